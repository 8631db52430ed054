"""The part of a Python model's process that talks to the server. Models use only `triton_python_backend_utils`."""
