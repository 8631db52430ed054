"""Calls of other models (business logic scripting). They are made by the server, on behalf of a batch of requests."""

import contextvars
import threading
import weakref

from .errors import TritonModelException
from .response import InferenceResponse

# The batch that the calling code works on. Threads of the model do not know theirs, and get the newest.
batch_of_caller = contextvars.ContextVar("tritonjs_batch", default=None)


class _Line:
    """Set by the stub once there is a server to call."""

    channel = None
    newest_batch = None


line = _Line()


def _tell(loop, what, *arguments):
    """Has a loop do something, if it still runs."""
    try:
        loop.call_soon_threadsafe(what, *arguments)
    except RuntimeError:
        # It is closed: nobody waits.
        pass


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
        _tell(loop, settle, InferenceResponse.of(header, body))

    call.append(_start(request, False, on_answer))
    return future


def stream(request):
    """Calls and gives an iterator of the responses."""
    responses = ResponseIterator()
    responses.open(request)
    return responses


def start_stream(request, loop):
    """Calls and gives a task, whose result is an iterator of the responses once the first of them has come."""
    came = loop.create_future()
    responses = ResponseIterator()
    responses.open(request, lambda: _tell(loop, lambda: came.done() or came.set_result(None)))

    async def first():
        await came
        return responses

    return loop.create_task(first())


class ResponseIterator:
    """The responses of another model, one at a time; once all have come, they can be gone through again."""

    def __init__(self):
        self._changed = threading.Condition()
        self._waiting = []
        self._seen = []
        self._place = 0
        self._over = False
        self._call = None
        self._on_first = None

    def open(self, request, on_first=None):
        self._on_first = on_first
        # The line must not keep an iterator that the model has let go of; a task that waits for it is kept by nothing else.
        take = weakref.WeakMethod(self._take)
        awaited = [] if on_first is None else [self]

        def on_answer(header, body):
            its = take()
            awaited.clear()
            if its is not None:
                its(header, body)

        self._call = _start(request, True, on_answer)

    def _take(self, header, body):
        response = InferenceResponse.of(header, body)
        with self._changed:
            self._waiting.append((response, header["last"]))
            self._changed.notify()
        if self._on_first is not None:
            self._on_first()
            self._on_first = None

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
        """Tells the other model that no more is wanted. How it ends is up to it: with an error CANCELLED, or as ever."""
        if not self._over:
            line.channel.send({"type": "stop", "call": self._call})

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
