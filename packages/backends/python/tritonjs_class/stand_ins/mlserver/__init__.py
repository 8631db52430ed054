"""The part of MLServer that models import. An installed MLServer is used instead."""

from . import types
from .model import MLModel
from .settings import ModelParameters, ModelSettings

__all__ = ["MLModel", "ModelParameters", "ModelSettings", "types"]
