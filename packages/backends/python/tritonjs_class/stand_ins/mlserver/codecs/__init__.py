"""Codecs between tensors of requests and values of Python."""

from .base import codec_for, codec_of, response_of
from .decorator import decode_args
from .numpy import NumpyCodec, NumpyRequestCodec
from .string import StringCodec, StringRequestCodec

__all__ = [
    "NumpyCodec",
    "NumpyRequestCodec",
    "StringCodec",
    "StringRequestCodec",
    "codec_for",
    "codec_of",
    "decode_args",
    "response_of",
]
