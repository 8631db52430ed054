"""Imports the module of a model."""

import importlib
import os
import sys
import types


class _Place:
    directory = None


def get_model_dir():
    """Returns the directory of the model's version."""
    return _Place.directory


def load(path):
    """Imports the module at a path, as part of a package."""
    _Place.directory = os.path.dirname(path)
    for directory in (_Place.directory, os.path.dirname(_Place.directory)):
        sys.path.append(directory)
    # Compiled files in a repository would look like changes of the model. They may also be from an older version.
    sys.dont_write_bytecode = True
    package, module = os.path.basename(_Place.directory), os.path.basename(path)[: -len(".py")]
    if not package.isdigit():
        # Outside a repository, the directory's name may be that of another package. In a repository it is the version.
        package = "tritonjs_model"
        sys.modules[package] = types.ModuleType(package)
        sys.modules[package].__path__ = [_Place.directory]
    return importlib.import_module(package + "." + module)
