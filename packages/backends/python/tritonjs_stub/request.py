"""Requests: from the server to the model, and from the model to other models."""

import enum
import json

from . import calls
from .answering import InferenceResponseSender
from .errors import TritonModelException, text
from .response import parameters_to_wire
from .tensor import Tensor

TRITONSERVER_REQUEST_FLAG_SEQUENCE_START = 1
TRITONSERVER_REQUEST_FLAG_SEQUENCE_END = 2
TRITONSERVER_REQUEST_RELEASE_ALL = 1
TRITONSERVER_REQUEST_RELEASE_RESCHEDULE = 2


class MemoryType(enum.IntEnum):
    TRITONSERVER_MEMORY_CPU = 0
    TRITONSERVER_MEMORY_GPU = 2


class PreferredMemory:
    """The preferred memory for the outputs of a call."""

    def __init__(self, preferred_memory_type, preferred_device_id=0):
        self.memory_type = MemoryType(preferred_memory_type)
        self.device_id = int(preferred_device_id)


class InferenceTrace:
    """The trace of a request."""

    def __init__(self, traceparent=None):
        self._traceparent = traceparent

    def get_context(self):
        """The context as JSON, for a propagator of OpenTelemetry; None if the request has no span."""
        if self._traceparent is None:
            return None
        return json.dumps({"traceparent": self._traceparent})


class InferenceRequest:
    """A request from the model to another model. `of` creates requests from the server."""

    def __init__(
        self,
        request_id="",
        correlation_id=0,
        inputs=None,
        requested_output_names=None,
        model_name=None,
        model_version=-1,
        flags=0,
        timeout=0,
        preferred_memory=None,
        trace=None,
        parameters=None,
    ):
        for name, value in (
            ("correlation_id", correlation_id),
            ("inputs", inputs),
            ("requested_output_names", requested_output_names),
            ("model_name", model_name),
        ):
            if value is None:
                raise TypeError("InferenceRequest needs '" + name + "'")
        if isinstance(correlation_id, bool) or not isinstance(correlation_id, (int, str)):
            raise TritonModelException("Correlation ID must be integer or string")
        request_id = text(request_id, "request_id")
        model_name = text(model_name, "model_name")
        requested_output_names = [text(name, "the name of an output") for name in requested_output_names]
        place = " for request with id '" + request_id + "' and model name '" + model_name + "' should not be empty."
        for tensor in inputs:
            if tensor is None:
                raise TritonModelException("Input tensor" + place)
            if not isinstance(tensor, Tensor):
                raise TypeError("input of an InferenceRequest: expected a Tensor, got " + str(type(tensor)))
        if "" in requested_output_names:
            raise TritonModelException("Requested output name" + place)
        self._request_id = request_id
        self._correlation_id = correlation_id
        self._inputs = list(inputs)
        self._outputs = set(requested_output_names)
        self._model_name = model_name
        self._model_version = int(model_version)
        self._flags = int(flags)
        self._timeout = int(timeout)
        self._preferred_memory = preferred_memory
        self._trace = trace if trace is not None else InferenceTrace()
        self._wire_parameters = parameters_to_wire(parameters)
        self._parameters = json.dumps(parameters or {})
        self._answering = None
        self.release_flags = TRITONSERVER_REQUEST_RELEASE_ALL

    @classmethod
    def of(cls, wire, body, model_name, outputs, answering):
        """Creates a request from the server."""
        request = cls.__new__(cls)
        request._request_id = wire["id"]
        correlation_id = wire["correlationId"]
        request._correlation_id = correlation_id[0] if isinstance(correlation_id, list) else int(correlation_id)
        request._inputs = [Tensor.of(tensor, body) for tensor in wire["inputs"]]
        request._outputs = outputs
        request._model_name = model_name
        request._model_version = -1
        request._flags = wire["flags"]
        request._timeout = wire["timeout"]
        request._preferred_memory = None
        request._trace = InferenceTrace(wire.get("traceparent"))
        request._wire_parameters = None
        request._parameters = wire["parameters"]
        request._answering = answering
        request.release_flags = TRITONSERVER_REQUEST_RELEASE_ALL
        return request

    def inputs(self):
        return self._inputs

    def request_id(self):
        return self._request_id

    def correlation_id(self):
        return self._correlation_id

    def flags(self):
        return self._flags

    def set_flags(self, flags):
        self._flags = int(flags)

    def timeout(self):
        return self._timeout

    def parameters(self):
        return self._parameters

    def trace(self):
        return self._trace

    def preferred_memory(self):
        return self._preferred_memory

    def requested_output_names(self):
        return set(self._outputs)

    def is_cancelled(self):
        """Returns whether the request is cancelled."""
        return self._answering is not None and self._answering.cancelled

    def get_response_sender(self):
        if self._answering is None:
            raise TritonModelException("cannot get a response sender of a request to another model")
        self._answering.has_sender = True
        return InferenceResponseSender(self._answering)

    def set_release_flags(self, flags):
        if flags not in (TRITONSERVER_REQUEST_RELEASE_ALL, TRITONSERVER_REQUEST_RELEASE_RESCHEDULE):
            raise TritonModelException("Unable to set release flags. Unsupported flags provided.")
        self.release_flags = flags

    def exec(self, decoupled=False):
        """Calls the other model and returns its response, or with `decoupled` an iterator of its responses."""
        return calls.stream(self) if decoupled else calls.wait(self)

    def async_exec(self, decoupled=False):
        """Calls the other model like `exec`. Returns an awaitable."""
        import asyncio

        loop = asyncio.get_running_loop()
        return calls.start_stream(self, loop) if decoupled else calls.start(self, loop)

    def _prefers_gpu(self):
        preferred = self._preferred_memory
        return preferred is not None and preferred.memory_type == MemoryType.TRITONSERVER_MEMORY_GPU

    def wire(self):
        """Returns the header's entry for a request to another model, and the bytes of its inputs."""
        tensors = [tensor.wire() for tensor in self._inputs]
        correlation_id = self._correlation_id
        wire = {
            "model": self._model_name,
            "version": self._model_version,
            "id": self._request_id,
            "correlationId": [correlation_id] if isinstance(correlation_id, str) else str(correlation_id),
            "flags": self._flags,
            "timeout": self._timeout,
            "parameters": self._wire_parameters or [],
            "requested": sorted(self._outputs),
            "prefersGpu": self._prefers_gpu(),
            "inputs": [described for described, _ in tensors],
        }
        return wire, tensors
