"""The life cycle of a model's process: load, run batches, finalize."""

import os
import sys
import threading
import time
import weakref
from collections.abc import Coroutine

from . import calls, gpu_memory, model_file, process_memory, server
from .answering import Abandoned, Answering, OpenAnswerings
from .children import Children
from .errors import StubError, report, text_of
from .request import TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, InferenceRequest
from .response import InferenceResponse
from .tensor_memory import open_memory


class Stub:
    """
    Runs a model. The main thread reads the commands of the server from a connection of their own, and runs the batches,
    one at a time, because most libraries prefer the main thread. Another thread reads the messages that may arrive
    while a batch runs.
    """

    def __init__(self, channel, commands):
        self._channel = channel
        self._commands = commands
        self._abandoned = Abandoned(channel)
        # Answers that may still get messages from the server. Only the requests keep them alive.
        self._answering = OpenAnswerings()
        self._loop = None
        self._tasks = set()
        self._starting = threading.Lock()
        server.line.channel = channel
        calls.line.channel = channel
        Children(channel)

    def run(self):
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(line_buffering=True)
        # Some models annotate their code with types of Triton's compiled module.
        import triton_python_backend_utils

        sys.modules["c_python_backend_utils"] = triton_python_backend_utils
        threading.Thread(target=self._read, daemon=True, name="tritonjs-reader").start()
        self._memory = open_memory()
        memory = {} if self._memory is None else {"memory": self._memory.describe()}
        self._channel.send({"type": "started", "python": sys.version.split()[0], **memory})
        init, _ = self._next_command()
        if init["type"] == "stop":
            return
        if init.get("sharesMemory"):
            self._channel.share(self._memory)
            self._commands.share(self._memory)
        else:
            self._memory = None
        try:
            if init["type"] == "complete":
                self._complete(init)
                return
            self._load(init)
        except BaseException as error:
            self._channel.send({"type": "failed", "error": text_of(error), **_lacks(error)})
            return
        ready = {
            "type": "ready",
            "canTellReadiness": hasattr(self._model, "is_ready"),
            "maxElements": self._max_elements,
        }
        if "gpuLibrary" in init:
            ready["gpu"] = self._gpu
        self._channel.send(ready)
        while self._run_next():
            pass

    def _read(self):
        while True:
            frame = self._channel.receive()
            if frame is None:
                # The server has ended. The guardian ends the rest of the group.
                os._exit(0)
            header, body = frame
            kind = header["type"]
            if kind == "answer":
                self._channel.answer(header, body)
            elif kind == "cancel":
                self._answering.cancel(header["batch"], header["index"])
            elif kind == "taken":
                self._answering.taken(header["batch"], header["index"])
            elif kind == "readiness":
                # On a thread of its own, because `is_ready` may wait for a message that this thread has to read.
                threading.Thread(target=self._tell_readiness, daemon=True, name="tritonjs-readiness").start()
            # Nothing of a message may be kept while this thread waits for the next one.
            del frame, header, body

    def _next_command(self):
        """Waits for the next command: its header and its body."""
        frame = self._commands.receive()
        if frame is None:
            # The server has ended. The guardian ends the rest of the group.
            os._exit(0)
        return frame

    def _complete(self, init):
        from .model_config import ModelConfig

        config = ModelConfig(init["config"])
        model = model_file.load(init["path"], init.get("modelDirectory")).TritonPythonModel
        if hasattr(model, "auto_complete_config"):
            config = model.auto_complete_config(config)
        if not isinstance(config, ModelConfig):
            raise StubError(
                "auto_complete_config function in model '"
                + init["model"]
                + "' must return a valid pb.ModelConfig object."
            )
        self._channel.send({"type": "ready"})

    def _load(self, init):
        self._path = init["path"]
        self._name = init["instance"]
        self._model_name = init["model"]
        self._decoupled = init["decoupled"]
        self._outputs = set(init["outputs"])
        self._states = set(init["states"])
        self._reports_memory = init["reportMemory"]
        if "gpuLibrary" in init:
            self._gpu = gpu_memory.open_memory(self._channel, init["gpuLibrary"])
        self._model = model_file.load(init["path"], init.get("modelDirectory")).TritonPythonModel()
        if hasattr(self._model, "initialize"):
            self._model.initialize(init["arguments"])
        self._max_elements = _limits(self._model, init["inputs"])

    def _run_next(self):
        """Runs the next command of the server. While it waits for a command, it keeps nothing of the previous one."""
        header, body = self._next_command()
        if header["type"] == "stop":
            self._finalize()
            return False
        self._run(header, body)
        return True

    def _tell_readiness(self):
        try:
            ready = self._model.is_ready()
            if isinstance(ready, Coroutine):
                ready = self._start(ready).result()
            if not isinstance(ready, bool):
                raise StubError("is_ready() must return a boolean value")
            answer = {"ready": ready}
        except BaseException as error:
            answer = {"error": text_of(error)}
        try:
            self._channel.send({"type": "readiness", **answer})
        except OSError:
            # The process ends.
            pass

    def _finalize(self):
        if hasattr(self._model, "finalize"):
            try:
                self._model.finalize()
            except BaseException as error:
                report(error)
        sys.stdout.flush()
        sys.stderr.flush()

    def _run(self, header, body):
        started = time.perf_counter_ns()
        batch = header["batch"]
        calls.line.newest_batch = batch
        answering = []
        requests = []
        for index, wire in enumerate(header["requests"]):
            outputs = set(wire["requested"]) or self._outputs
            one = Answering(self._channel, batch, index, self._decoupled, outputs | self._states, self._abandoned)
            answering.append(one)
            requests.append(InferenceRequest.of(wire, body, self._model_name, outputs, one))
        del body
        if not self._answering.begin(batch, answering) and header["waits"]:
            # The batch was waiting here when its clients left, so it is dropped as from the server's queue.
            for one in answering:
                one.close()
            self._channel.send({"type": "executed", "batch": batch, "results": [None] * len(requests)})
            return
        token = calls.batch_of_caller.set(batch)
        try:
            answer, tensors = self._execute(requests, answering)
        except BaseException as error:
            answer, tensors = self._failed(error, answering), []
        finally:
            calls.batch_of_caller.reset(token)
        if self._reports_memory:
            answer["memory"] = process_memory.used_bytes()
        if self._memory is not None:
            self._memory.tidy()
        took = (time.perf_counter_ns() - started) // 1000
        self._channel.send({"type": "executed", "batch": batch, "took": took, **answer}, tensors)

    def _failed(self, error, answering):
        for one in answering:
            one.close()
        text = "Failed to process the request(s) for model '" + self._name + "', message: " + text_of(error)
        return {"error": text}

    def _execute(self, requests, answering):
        if not hasattr(self._model, "execute"):
            raise StubError("Python model " + self._path + " does not implement `execute` method.")
        returned = self._model.execute(requests)
        if isinstance(returned, Coroutine):
            returned = self._await(returned, requests, answering)
        return self._answer(requests, answering, returned)

    def _answer(self, requests, answering, responses):
        if responses is None:
            responses = [None] * len(requests)
        elif self._decoupled:
            raise StubError(
                "Python model '"
                + self._name
                + "' is using the decoupled mode and the execute function must return None."
            )
        if not isinstance(responses, list):
            raise StubError("Expected a list in the execute return, found type '" + str(type(responses)) + "'.")
        if len(responses) != len(requests):
            raise StubError(
                "Number of InferenceResponse objects do not match the number of InferenceRequest objects. "
                + "InferenceRequest(s) size is:"
                + str(len(requests))
                + ", and InferenceResponse(s) size is:"
                + str(len(responses))
                + "\n"
            )
        _check(requests, responses)
        results = []
        tensors = []
        for request, one, response in zip(requests, answering, responses):
            if response is not None:
                wire, own = one.returned(response)
                results.append(wire)
                tensors.extend(own)
            elif request.release_flags == TRITONSERVER_REQUEST_RELEASE_RESCHEDULE:
                one.close()
                results.append("again")
            elif one.closed or one.has_sender or self._decoupled:
                results.append(None)
            else:
                one.close()
                results.append({"missing": True})
        return {"results": results}, tensors

    def _start(self, coroutine):
        """Starts a coroutine on the loop of the model."""
        # Imported late, because most models do not need it and the import is slow.
        import asyncio

        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, daemon=True, name="tritonjs-asyncio").start()
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def _await(self, coroutine, requests, answering):
        """Runs a coroutine on the loop of the model. Waits for its end, unless the model is decoupled."""
        future = self._start(coroutine)
        if not self._decoupled:
            return future.result()
        # A loop has only weak references to its tasks.
        self._tasks.add(future)
        batch = calls.batch_of_caller.get()
        still = [weakref.ref(one) for one in answering]

        def done(future):
            self._tasks.discard(future)
            error = future.exception()
            if error is None:
                return
            report(error)
            text = self._failed(error, [])["error"]
            for index, one in enumerate(still):
                answering = one()
                if answering is None or answering.closed:
                    continue
                answering.close()
                wire = {"error": {"code": "INTERNAL", "message": text}}
                self._channel.send({"type": "response", "batch": batch, "index": index, "final": True, **wire})

        future.add_done_callback(done)
        return None


def _lacks(error):
    """The module that is not installed, if that is the error."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return {}
    python = sys.executable + " (Python " + sys.version.split()[0] + ")"
    return {"lacks": {"module": error.name, "python": python}}


def _limits(model, inputs):
    """The most elements that inputs of one request may have, where the model limits them. Triton ignores the attribute."""
    limits = getattr(model, "tritonjs_max_elements", {})
    expected = "tritonjs_max_elements: expected a dict with a number of elements above 0 for some of the inputs "
    expected += ", ".join("'" + name + "'" for name in inputs)
    if not isinstance(limits, dict):
        raise StubError(expected + ", got " + str(type(limits)))
    for name, limit in limits.items():
        if name not in inputs or isinstance(limit, bool) or not isinstance(limit, int) or limit <= 0:
            raise StubError(expected + ", got " + repr(limit) + " for " + repr(name))
    return limits


def _check(requests, responses):
    for request, response in zip(requests, responses):
        if response is None:
            continue
        if request.release_flags == TRITONSERVER_REQUEST_RELEASE_RESCHEDULE:
            raise StubError(
                "Expected a None object in the execute function return list for reschduled request, found type '"
                + str(type(response))
                + "'."
            )
        if not isinstance(response, InferenceResponse):
            raise StubError(
                "Expected an 'InferenceResponse' object in the execute function return list, found type '"
                + str(type(response))
                + "'."
            )
