"""Arrays of numpy."""

import numpy as np

from .. import types
from .base import RequestCodec

_TYPES = {
    "BOOL": "bool",
    "FP16": "float16",
    "FP32": "float32",
    "FP64": "float64",
    **{"INT" + bits: "int" + bits for bits in ("8", "16", "32", "64")},
    **{"UINT" + bits: "uint" + bits for bits in ("8", "16", "32", "64")},
    "BYTES": "object",
}
_NAMES = {name: datatype for datatype, name in _TYPES.items()}


class NumpyCodec:
    ContentType = "np"

    @classmethod
    def can_encode(cls, payload):
        return isinstance(payload, np.ndarray)

    @classmethod
    def decode_input(cls, request_input):
        data = getattr(request_input.data, "root", request_input.data)
        return np.array(data, dtype=_TYPES[request_input.datatype]).reshape(request_input.shape)

    decode = decode_input
    decode_output = decode_input

    @classmethod
    def encode_output(cls, name, payload, **_):
        array = np.asarray(payload)
        datatype = _NAMES.get(array.dtype.name, "BYTES")
        return types.ResponseOutput(name=name, shape=list(array.shape), datatype=datatype, data=array.ravel().tolist())

    encode = encode_output


class NumpyRequestCodec(RequestCodec):
    output_codec = NumpyCodec
