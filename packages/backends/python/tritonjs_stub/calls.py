"""Calls of other models (business logic scripting). The server makes them on behalf of a batch of requests."""

import contextvars
import threading
import weakref

from .errors import TritonModelException
from .response import InferenceResponse

# The batch of the calling code. Threads of the model have no batch of their own and use the newest.
batch_of_caller = contextvars.ContextVar("tritonjs_batch", default=None)


class _Line:
    """The connection to the server. The stub sets it at the start."""

    channel = None
    newest_batch = None


line = _Line()


def _tell(loop, what, *arguments):
    """Schedules a call on a loop, if the loop still runs."""
    try:
        loop.call_soon_threadsafe(what, *arguments)
    except RuntimeError:
        # The loop is closed, so nothing waits for the call.
        pass


def _start(request, streaming, on_answer):
    if line.newest_batch is None:
        raise TritonModelException("BLS is only supported during the 'execute' function.")
    wire, tensors = request.wire()
    batch = batch_of_caller.get()
    header = {"type": "infer", "batch": line.newest_batch if batch is None else batch, "stream": streaming, **wire}
    return line.channel.start_call(header, on_answer, tensors)


def wait(request):
    """Calls a model and waits for its only response."""
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
    """Calls a model and returns a future of its response."""
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
    """Calls a model and returns an iterator of its responses."""
    responses = ResponseIterator()
    responses.open(request)
    return responses


def start_stream(request, loop):
    """Calls a model and returns a task. Its result is an iterator of the responses, once the first has arrived."""
    came = loop.create_future()
    responses = ResponseIterator()
    responses.open(request, lambda: _tell(loop, lambda: came.done() or came.set_result(None)))

    async def first():
        await came
        return responses

    return loop.create_task(first())


class ResponseIterator:
    """Iterates over the responses of another model. After the last response, a new iteration repeats them."""

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
        # The connection must not keep an iterator that the model dropped. Only `awaited` keeps one for a waiting task.
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
        """Cancels the call. The other model ends with the error CANCELLED, or as usual."""
        if not self._over:
            line.channel.send({"type": "stop", "call": self._call})

    def _end(self):
        self._over = True
        line.channel.end_call(self._call)

    def __del__(self):
        if self._over or self._call is None:
            return
        # Another thread sends the message, because this one may be in the middle of a send.
        threading.Thread(target=_give_up, args=(line.channel, self._call), daemon=True).start()


def _give_up(channel, call):
    channel.end_call(call)
    try:
        channel.send({"type": "end", "call": call})
    except OSError:
        pass
