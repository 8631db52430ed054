"""The side of a Python model's process that speaks with the server. Models see `triton_python_backend_utils` alone."""
