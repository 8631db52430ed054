"""Errors that models raise or create, and texts of exceptions."""

import enum
import os
import sys


class TritonModelException(Exception):
    """The error that `triton_python_backend_utils` itself raises."""


class StubError(Exception):
    """An error in the use of the interface, not an exception in the model's code. Its text has no type."""


def text(value, what):
    """Converts text to str. Like Triton, it also accepts bytes."""
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
        """Reads an error that the server sent."""
        return cls(wire["message"], getattr(cls, wire["code"], cls.UNKNOWN))

    def wire(self):
        return {"code": self._code.name, "message": self._message}


def text_of(error):
    """Formats an exception of a model: type, text and stack, innermost frame first."""
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
    """Logs an exception that reaches no client."""
    sys.stderr.write(text_of(error) + "\n")
