"""Choosing a codec, and responses of one output."""

from .. import types


def codec_of(request_input):
    """The codec of an input: that of its content type, else that of its data type."""
    from .numpy import NumpyCodec
    from .string import StringCodec

    content_type = getattr(request_input.parameters, "content_type", None)
    if content_type == "str" or (content_type is None and request_input.datatype == "BYTES"):
        return StringCodec
    if content_type in (None, "np"):
        return NumpyCodec
    raise ValueError("input '" + request_input.name + "': unknown content type '" + content_type + "': expected np or str")


def codec_for(value):
    """The codec of a value."""
    from .numpy import NumpyCodec
    from .string import StringCodec

    is_text = isinstance(value, (list, tuple)) and all(isinstance(one, (str, bytes)) for one in value)
    return StringCodec if is_text else NumpyCodec


def response_of(value, model_name, model_version=None, codec=None):
    encode = getattr(codec, "output_codec", codec) or codec_for(value)
    return types.InferenceResponse(
        model_name=model_name, model_version=model_version, outputs=[encode.encode_output("output-0", value)]
    )


class RequestCodec:
    """A codec of requests with one input."""

    output_codec = None

    @classmethod
    def decode_request(cls, request):
        return cls.output_codec.decode_input(request.inputs[0])

    @classmethod
    def encode_response(cls, model_name, payload, model_version=None, **_):
        return response_of(payload, model_name, model_version, cls.output_codec)
