"""The program of models that are a class with `load` and `predict`, as for Seldon and MLServer."""
