"""Requests and responses of the v2 protocol."""


class _Record:
    _fields = ()

    def __init__(self, **given):
        unknown = [name for name in given if name not in self._fields]
        if unknown:
            raise TypeError(type(self).__name__ + " has no field '" + unknown[0] + "'")
        for name in self._fields:
            setattr(self, name, given.get(name))

    def __repr__(self):
        return type(self).__name__ + "(" + ", ".join(name + "=" + repr(getattr(self, name)) for name in self._fields) + ")"


class Parameters:
    def __init__(self, **given):
        self.content_type = None
        vars(self).update(given)


class RequestInput(_Record):
    _fields = ("name", "shape", "datatype", "parameters", "data")


class RequestOutput(_Record):
    _fields = ("name", "parameters")


class ResponseOutput(_Record):
    _fields = ("name", "shape", "datatype", "parameters", "data")


class InferenceRequest(_Record):
    _fields = ("id", "parameters", "inputs", "outputs")


class InferenceResponse(_Record):
    _fields = ("model_name", "model_version", "id", "parameters", "outputs")
