"""The state of the answer to one request: the responses that its sender may still send, and whether it is cancelled."""

import queue
import threading
import weakref

from .errors import TritonModelException
from .response import InferenceResponse

TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1

# Responses in flight to a slow client before the model waits.
_WINDOW = 32


class Answering:
    """The answer to one request, shared by the request and its sender. It ends when the model drops both."""

    def __init__(self, channel, batch, index, decoupled, outputs, abandoned):
        self._channel = channel
        self._batch = batch
        self._index = index
        self._decoupled = decoupled
        self._outputs = outputs
        self._abandoned = abandoned
        self._changed = threading.Condition()
        self._under_way = 0
        self._sent = 0
        self.closed = False
        self.cancelled = False
        self.has_sender = False

    def _count(self, response, flags):
        """Checks that a response may be sent, and counts it."""
        if not self._decoupled:
            if response is not None and self._sent > 0:
                raise TritonModelException(
                    "Unable to send response. Non-decoupled model cannot send more than one response."
                )
            if response is None and self._sent == 0:
                raise TritonModelException(
                    "Unable to send response. Non-decoupled model cannot send complete final before sending a response."
                )
        if self.closed:
            raise TritonModelException("Unable to send response. Response sender has been closed.")
        self._sent += 1
        # The first response of a model that is not decoupled is its last.
        if flags == TRITONSERVER_RESPONSE_COMPLETE_FINAL:
            self.closed = True

    def returned(self, response):
        """Counts a response that `execute` returns. Returns its entry in the frame's header, and its bytes."""
        with self._changed:
            self._count(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return response.wire(self._outputs)

    def send(self, response, flags):
        if flags not in (0, TRITONSERVER_RESPONSE_COMPLETE_FINAL):
            raise TritonModelException("Unable to send response. Unsupported flag provided.")
        if flags == 0 and response is None:
            raise TritonModelException(
                "Inference Response object must be provided when the response flags is set to zero."
            )
        if response is not None and not isinstance(response, InferenceResponse):
            raise TypeError("send(): expected an InferenceResponse, got " + str(type(response)))
        with self._changed:
            self._count(response, flags)
            while self._under_way >= _WINDOW and not self.cancelled:
                self._changed.wait()
            self._under_way += 1
        wire, tensors = ({}, []) if response is None else response.wire(self._outputs)
        final = flags == TRITONSERVER_RESPONSE_COMPLETE_FINAL
        header = {"type": "response", "batch": self._batch, "index": self._index, "final": final, **wire}
        self._channel.send(header, tensors)

    def taken(self):
        """Counts a response that the server has passed on."""
        with self._changed:
            self._under_way -= 1
            self._changed.notify_all()

    def cancel(self):
        """Marks the request as cancelled."""
        with self._changed:
            self.cancelled = True
            self._changed.notify_all()

    def close(self):
        with self._changed:
            self.closed = True

    def __del__(self):
        # The interpreter may free the object in the middle of a send. Another thread therefore notifies the server.
        if not self.closed:
            self._abandoned.put((self._batch, self._index))


class OpenAnswerings:
    """Answerings by batch and index, while the model holds them."""

    def __init__(self):
        self._all = weakref.WeakValueDictionary()
        # The batches up to here have begun.
        self._newest = -1
        # Requests of later batches that are cancelled already.
        self._early = set()
        self._changing = threading.Lock()

    def begin(self, batch, answering):
        """Records the answerings of a batch. Returns False if all its requests were cancelled before."""
        for index, one in enumerate(answering):
            self._all[(batch, index)] = one
        with self._changing:
            self._newest = batch
            if not self._early:
                return True
            for index, one in enumerate(answering):
                one.cancelled = (batch, index) in self._early
            self._early = {key for key in self._early if key[0] > batch}
        return not all(one.cancelled for one in answering)

    def cancel(self, batch, index):
        """Marks a request as cancelled."""
        with self._changing:
            if batch > self._newest:
                self._early.add((batch, index))
                return
        answering = self._all.get((batch, index))
        if answering is not None:
            answering.cancel()

    def taken(self, batch, index):
        """Counts a response that the server has passed on."""
        answering = self._all.get((batch, index))
        if answering is not None:
            answering.taken()


class Abandoned:
    """Notifies the server of requests that the model dropped without a last response."""

    def __init__(self, channel):
        self._channel = channel
        self._queue = queue.SimpleQueue()
        threading.Thread(target=self._tell, daemon=True, name="tritonjs-abandoned").start()

    def put(self, request):
        self._queue.put(request)

    def _tell(self):
        while True:
            batch, index = self._queue.get()
            try:
                self._channel.send({"type": "abandoned", "batch": batch, "index": index})
            except OSError:
                return


class InferenceResponseSender:
    """Sends responses to one request, from any thread, also after `execute` has returned."""

    def __init__(self, answering):
        self._answering = answering

    def send(self, response=None, flags=0):
        self._answering.send(response, flags)

    def is_cancelled(self):
        return self._answering.cancelled
