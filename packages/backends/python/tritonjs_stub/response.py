"""Responses: from the model to the server, and from other models to this one."""

import json

from .errors import TritonError, TritonModelException
from .tensor import Tensor


def parameters_to_wire(parameters):
    """Converts parameters to lists with their types, in the given order."""
    if parameters is None:
        return []
    if not isinstance(parameters, dict):
        raise TritonModelException("Expect parameters to have type dict, got " + str(type(parameters)))
    wire = []
    for name, value in parameters.items():
        if not isinstance(name, str):
            raise TritonModelException("Expect parameters keys to have type str, found type " + str(type(name)))
        if isinstance(value, bool):
            wire.append([name, "bool", value])
        elif isinstance(value, int):
            wire.append([name, "int", str(int(value))])
        elif isinstance(value, str):
            wire.append([name, "string", value])
        else:
            raise TritonModelException(
                "Expect parameters values to have type bool/int/str, found type " + str(type(value))
            )
    return wire


class InferenceResponse:
    """Output tensors, or an error, with parameters."""

    def __init__(self, output_tensors=(), error=None, parameters=None):
        tensors = list(output_tensors)
        for tensor in tensors:
            if tensor is None:
                raise TritonModelException("Output tensor for inference response should not be empty.")
            if not isinstance(tensor, Tensor):
                raise TypeError("output of an InferenceResponse: expected a Tensor, got " + str(type(tensor)))
        if error is not None and not isinstance(error, TritonError):
            raise TypeError("error of an InferenceResponse: expected a TritonError, got " + str(type(error)))
        self._tensors = tensors
        self._error = error
        self._wire_parameters = parameters_to_wire(parameters)
        self._parameters = json.dumps(parameters or {})

    @classmethod
    def of(cls, wire, body):
        """Reads a response of another model from the server."""
        response = cls.__new__(cls)
        response._tensors = [Tensor.of(tensor, body) for tensor in wire.get("outputs", ())]
        response._error = TritonError.of(wire["error"]) if "error" in wire else None
        response._wire_parameters = []
        response._parameters = wire.get("parameters", "{}")
        return response

    @classmethod
    def failed(cls, message):
        return cls(error=TritonError(message))

    def output_tensors(self):
        return self._tensors

    def has_error(self):
        return self._error is not None

    def error(self):
        return self._error

    def parameters(self):
        return self._parameters

    def wire(self, outputs):
        """Returns the header's entry for the response with the requested outputs, and their bytes."""
        if self._error is not None:
            return {"error": self._error.wire()}, []
        tensors = [tensor.wire() for tensor in self._tensors if tensor.name() in outputs]
        wire = {"outputs": [described for described, _ in tensors]}
        if self._wire_parameters:
            wire["parameters"] = self._wire_parameters
        return wire, tensors
