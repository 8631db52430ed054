"""`predict` with arguments by name instead of a request."""

import functools
import inspect
import typing

from .base import codec_of, response_of
from .numpy import NumpyCodec
from .string import StringCodec


def decode_args(predict):
    """Decodes each input into the argument of its name, by the type of the argument."""
    hints = typing.get_type_hints(predict)

    @functools.wraps(predict)
    async def wrapped(self, payload):
        given = {one.name: _codec(hints.get(one.name), one).decode_input(one) for one in payload.inputs}
        value = predict(self, **given)
        value = await value if inspect.isawaitable(value) else value
        values = value if isinstance(value, tuple) else (value,)
        response = response_of(values[0], self.name, self.version)
        for index, other in enumerate(values[1:], 1):
            response.outputs.extend(response_of(other, self.name).outputs)
            response.outputs[-1].name = "output-" + str(index)
        return response

    return wrapped


def _codec(hint, request_input):
    if hint is not None and str in typing.get_args(hint):
        return StringCodec
    if getattr(hint, "__module__", "") == "numpy":
        return NumpyCodec
    return codec_of(request_input)
