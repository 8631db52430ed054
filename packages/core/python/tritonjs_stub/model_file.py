"""The module of a model."""

import importlib
import os
import sys


class _Place:
    directory = None


def get_model_dir():
    """Directory of the model's version."""
    return _Place.directory


def load(path):
    """Imports the module at a path, as part of a package that is named after its version."""
    _Place.directory = os.path.dirname(path)
    for directory in (_Place.directory, os.path.dirname(_Place.directory)):
        sys.path.append(directory)
    # Compiled files in a repository would look like changes of the model, and may be those of an older version.
    sys.dont_write_bytecode = True
    name = os.path.basename(_Place.directory) + "." + os.path.basename(path)[: -len(".py")]
    return importlib.import_module(name)
