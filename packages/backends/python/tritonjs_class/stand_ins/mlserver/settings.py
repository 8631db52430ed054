"""The settings that a model gets."""


class ModelParameters:
    def __init__(self, uri=None, version=None, extra=None, **others):
        self.uri = uri
        self.version = version
        self.extra = extra or {}
        vars(self).update(others)


class ModelSettings:
    def __init__(self, name, implementation=None, parameters=None, **others):
        self.name = name
        self.implementation = implementation
        self.parameters = parameters or ModelParameters()
        vars(self).update(others)

    @property
    def version(self):
        return self.parameters.version
