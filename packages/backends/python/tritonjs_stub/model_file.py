"""Imports the module of a model, or of the backend that runs it."""

import importlib
import os
import sys
import types


class _Place:
    directory = None


def get_model_dir():
    """Returns the directory of the model's version."""
    return _Place.directory


def load(path, model_directory=None):
    """
    Imports the module at a path. Without a directory of the model's version, the module is in that directory, and part
    of a package. A module that models of a backend share is outside of it, and is imported by its own name.
    """
    # Compiled files in a repository would look like changes of the model. They may also be from an older version.
    sys.dont_write_bytecode = True
    home, module = os.path.dirname(path), os.path.basename(path)[: -len(".py")]
    sys.path.append(home)
    if model_directory is not None:
        _Place.directory = model_directory
        return importlib.import_module(module)
    _Place.directory = home
    sys.path.append(os.path.dirname(home))
    package = os.path.basename(home)
    if not package.isdigit():
        # Outside a repository, the directory's name may be that of another package. In a repository it is the version.
        package = "tritonjs_model"
        sys.modules[package] = types.ModuleType(package)
        sys.modules[package].__path__ = [home]
    return importlib.import_module(package + "." + module)
