"""Requests of a model to the server other than inference: logging, loading and unloading of models, metrics."""

import enum

from .errors import TritonError, TritonModelException, text


class _Line:
    channel = None


line = _Line()


def ask(what, *arguments, tensors=(), failed=""):
    """Sends a request to the server and returns the answer. Raises TritonModelException for an error."""
    if line.channel is None:
        raise TritonModelException("cannot ask the server before the model is loaded")
    header = {"type": "ask", "what": what, "arguments": list(arguments), "files": [one for one, _ in tensors]}
    answer, _ = line.channel.call(header, tensors)
    if "error" in answer:
        raise TritonModelException(failed + TritonError.of(answer["error"]).message())
    return answer.get("value")


class LogLevel(enum.IntEnum):
    INFO = 0
    WARNING = 1
    ERROR = 2
    VERBOSE = 3


class Logger:
    """Writes to the log of the server."""

    LogLevel = LogLevel
    INFO = LogLevel.INFO
    WARNING = LogLevel.WARNING
    ERROR = LogLevel.ERROR
    VERBOSE = LogLevel.VERBOSE

    @staticmethod
    def log(message, level=LogLevel.INFO):
        message = text(message, "a message for the log")
        if not isinstance(level, LogLevel):
            raise TypeError("level: expected a LogLevel, got " + str(type(level)))
        if line.channel is not None:
            line.channel.send({"type": "log", "level": level.name, "message": message})

    @staticmethod
    def log_info(message):
        Logger.log(message, LogLevel.INFO)

    @staticmethod
    def log_warn(message):
        Logger.log(message, LogLevel.WARNING)

    @staticmethod
    def log_error(message):
        Logger.log(message, LogLevel.ERROR)

    @staticmethod
    def log_verbose(message):
        Logger.log(message, LogLevel.VERBOSE)


def load_model(model_name, config="", files=None):
    """Loads a model. Needs the model control mode `explicit`. `files` are bytes by path: `file:1/model.py`."""
    tensors = [({"name": path}, data) for path, data in (files or {}).items()]
    ask("load", text(model_name, "model_name"), text(config, "config"), tensors=tensors)


def unload_model(model_name, unload_dependents=False):
    """Takes a model out of service. Needs the model control mode `explicit`."""
    ask("unload", text(model_name, "model_name"), bool(unload_dependents))


def is_model_ready(model_name, model_version=""):
    """Returns whether a model is ready for calls."""
    return ask("ready", text(model_name, "model_name"), str(model_version))
