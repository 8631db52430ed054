"""Calls of other models (business logic scripting). They are made by the server, on behalf of a batch of requests."""

import contextvars
import threading

from .errors import TritonModelException
from .response import InferenceResponse

# The batch that the calling code works on. Threads of the model do not know theirs, and get the newest.
batch_of_caller = contextvars.ContextVar("tritonjs_batch", default=None)


class _Line:
    """Set by the stub once there is a server to call."""

    channel = None
    newest_batch = None


line = _Line()


def _start(request, streaming, on_answer):
    if line.newest_batch is None:
        raise TritonModelException("BLS is only supported during the 'execute' function.")
    wire, tensors = request.wire()
    batch = batch_of_caller.get()
    header = {"type": "infer", "batch": line.newest_batch if batch is None else batch, "stream": streaming, **wire}
    return line.channel.start_call(header, on_answer, tensors)


def wait(request):
    """Calls and waits for the one response."""
    done = threading.Event()
    got = []

    def on_answer(header, body):
        got.append(InferenceResponse.of(header, body))
        done.set()

    call = _start(request, False, on_answer)
    try:
        done.wait()
    finally:
        line.channel.end_call(call)
    return got[0]


def start(request, loop):
    """Calls and gives a future of the response."""
    future = loop.create_future()
    call = []

    def settle(response):
        line.channel.end_call(call[0])
        if not future.done():
            future.set_result(response)

    def on_answer(header, body):
        loop.call_soon_threadsafe(settle, InferenceResponse.of(header, body))

    call.append(_start(request, False, on_answer))
    return future


def stream(request):
    """Calls and gives an iterator of the responses."""
    responses = ResponseIterator()
    responses.open(request)
    return responses


class ResponseIterator:
    """The responses of another model, one at a time; once all have come, they can be gone through again."""

    def __init__(self):
        self._changed = threading.Condition()
        self._waiting = []
        self._seen = []
        self._place = 0
        self._over = False
        self._call = None

    def open(self, request):
        self._call = _start(request, True, self._take)

    def _take(self, header, body):
        response = InferenceResponse.of(header, body)
        with self._changed:
            self._waiting.append((response, header["last"]))
            self._changed.notify()

    def __iter__(self):
        if self._over and self._place >= len(self._seen):
            self._place = 0
        return self

    def __next__(self):
        if self._over:
            if self._place >= len(self._seen):
                raise StopIteration
            self._place += 1
            return self._seen[self._place - 1]
        with self._changed:
            while not self._waiting:
                if self._over:
                    raise StopIteration
                self._changed.wait()
            response, last = self._waiting.pop(0)
        self._seen.append(response)
        if last:
            self._end()
            self._place = len(self._seen)
        else:
            line.channel.send({"type": "taken", "call": self._call})
        return response

    def cancel(self):
        """Gives the call up. An error with the code CANCELLED follows what has come already."""
        if not self._over:
            line.channel.send({"type": "end", "call": self._call})

    def _end(self):
        self._over = True
        line.channel.end_call(self._call)

    def __del__(self):
        if self._over or self._call is None:
            return
        # Another thread sends it: this one may be in the middle of a send.
        threading.Thread(target=_give_up, args=(line.channel, self._call), daemon=True).start()


def _give_up(channel, call):
    channel.end_call(call)
    try:
        channel.send({"type": "end", "call": call})
    except OSError:
        pass
