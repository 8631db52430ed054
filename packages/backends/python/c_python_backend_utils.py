"""Triton's compiled part of `triton_python_backend_utils`, which some models import. Here both have the same names."""

from triton_python_backend_utils import *  # noqa: F403
