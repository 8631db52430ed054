"""Errors that models raise and make, and the text of what they raise."""

import enum
import os
import sys


class TritonModelException(Exception):
    """Raised by `triton_python_backend_utils` itself."""


class StubError(Exception):
    """What is wrong with what a model does, as opposed to an exception in its code: has no type in its text."""


def text(value, what):
    """A str, also of bytes: Triton takes these wherever it takes text."""
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if not isinstance(value, str):
        raise TypeError(what + ": expected a str, got " + str(type(value)))
    return value


class TritonError:
    """An error for one request, with one of Triton's codes."""

    class __ErrorCode(enum.IntEnum):
        UNKNOWN = 0
        INTERNAL = 1
        NOT_FOUND = 2
        INVALID_ARG = 3
        UNAVAILABLE = 4
        UNSUPPORTED = 5
        ALREADY_EXISTS = 6
        CANCELLED = 7

    UNKNOWN = __ErrorCode.UNKNOWN
    INTERNAL = __ErrorCode.INTERNAL
    NOT_FOUND = __ErrorCode.NOT_FOUND
    INVALID_ARG = __ErrorCode.INVALID_ARG
    UNAVAILABLE = __ErrorCode.UNAVAILABLE
    UNSUPPORTED = __ErrorCode.UNSUPPORTED
    ALREADY_EXISTS = __ErrorCode.ALREADY_EXISTS
    CANCELLED = __ErrorCode.CANCELLED

    def __init__(self, message, code=INTERNAL):
        self._message = text(message, "the message of a TritonError")
        self._code = type(self).INTERNAL.__class__(code)

    def code(self):
        return self._code

    def message(self):
        return self._message

    @classmethod
    def of(cls, wire):
        """The error that the server tells of."""
        return cls(wire["message"], getattr(cls, wire["code"], cls.UNKNOWN))

    def wire(self):
        return {"code": self._code.name, "message": self._message}


def text_of(error):
    """What a model raised: type, text, and where, innermost first."""
    if isinstance(error, StubError):
        return str(error)
    text = type(error).__name__ + ": " + str(error)
    frames = _frames(error)
    return text + "\n\nAt:\n" + "".join(frames) if frames else text


_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _frames(error):
    frames = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        name = code.co_filename
        if not name.startswith((_HERE, "<frozen importlib")) and code.co_name != "import_module":
            frames.append("  " + name + "(" + str(trace.tb_lineno) + "): " + code.co_name + "\n")
        trace = trace.tb_next
    return frames[::-1]


def report(error):
    """Writes an exception that nobody is told of to the log."""
    sys.stderr.write(text_of(error) + "\n")
