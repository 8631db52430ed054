"""Lists of strings."""

from .. import types
from .base import RequestCodec


class StringCodec:
    ContentType = "str"

    @classmethod
    def can_encode(cls, payload):
        return isinstance(payload, list) and all(isinstance(one, str) for one in payload)

    @classmethod
    def decode_input(cls, request_input):
        data = getattr(request_input.data, "root", request_input.data)
        return [one.decode() if isinstance(one, bytes) else one for one in data]

    decode = decode_input
    decode_output = decode_input

    @classmethod
    def encode_output(cls, name, payload, **_):
        return types.ResponseOutput(name=name, shape=[len(payload), 1], datatype="BYTES", data=list(payload))

    encode = encode_output


class StringRequestCodec(RequestCodec):
    output_codec = StringCodec
