"""Connections to the server, and from processes that the model forked."""

import itertools
import os
import socket
import threading

from .frames import FrameReader, frame_start

_ALIGNMENT = 64
# Smaller bodies are copied behind their header and sent as one buffer.
_JOINED_BYTES = 16 << 10
# Bodies from this size on go through the memory that both processes share. The server has the same number.
_SHARED_BYTES = 32 << 10
# Largest number of buffers in one call of sendmsg.
_MOST_BUFFERS = 512
_SOCKET_BYTES = 4 << 20

_open = []


def close_in_child():
    """Closes the connections in a process that the model forked."""
    for channel in list(_open):
        channel.detach()


class Channel:
    """A connection in both directions."""

    def __init__(self, descriptor, first_call=1):
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)
        self._reader = FrameReader(self._socket)
        self._memory = None
        self._sending = threading.Lock()
        self._calls = itertools.count(first_call)
        self._waiting = {}
        self._owner = os.getpid()
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            self._socket.setsockopt(socket.SOL_SOCKET, option, _SOCKET_BYTES)
        _open.append(self)

    def detach(self):
        self._socket.close()
        if self in _open:
            _open.remove(self)

    def next_call(self):
        """Returns a new number for a call."""
        return next(self._calls)

    def share(self, memory):
        """Sends and receives large bodies through memory from now on."""
        self._memory = memory
        self._reader.memory = memory

    def send(self, header, tensors=()):
        """Sends a frame. `tensors` are pairs of a tensor's entry in the header and its bytes."""
        if os.getpid() != self._owner:
            raise RuntimeError("cannot answer a request from a process that the model forked")
        views, size = [], 0
        for described, data in tensors:
            view = memoryview(data).cast("B") if len(data) > 0 else memoryview(b"")
            offset = size + (-size % _ALIGNMENT)
            described["offset"] = offset
            described["size"] = view.nbytes
            views.append((offset, view))
            size = offset + view.nbytes
        with self._sending:
            if size >= _SHARED_BYTES and self._memory is not None:
                place = self._memory.place_for(size)
                if place > 0:
                    for offset, view in views:
                        self._memory.write(place, offset, view)
                    self._socket.sendall(frame_start(header, size, place))
                    return
            start = frame_start(header, size)
            if size <= _JOINED_BYTES:
                self._socket.sendall(b"".join([start, *_pieces(views)]))
            else:
                self._send_all([memoryview(piece) for piece in (start, *_pieces(views)) if len(piece) > 0])

    def _send_all(self, buffers):
        first = 0
        while first < len(buffers):
            sent = self._socket.sendmsg(buffers[first : first + _MOST_BUFFERS])
            while first < len(buffers) and sent >= buffers[first].nbytes:
                sent -= buffers[first].nbytes
                first += 1
            if sent > 0:
                buffers[first] = buffers[first][sent:]

    def receive(self):
        """Receives a frame: its header, and its body as writable bytes. Returns None when the server has ended."""
        return self._reader.next()

    def start_call(self, header, on_answer, tensors=()):
        """Sends a request to the server. `on_answer` gets the header and body of each answer, on the reader's thread."""
        call = next(self._calls)
        self._waiting[call] = on_answer
        try:
            self.send({**header, "call": call}, tensors)
        except BaseException:
            self._waiting.pop(call, None)
            raise
        return call

    def call(self, header, tensors=()):
        """Sends a request to the server and waits for its only answer."""
        done = threading.Event()
        got = []

        def on_answer(answer, body):
            got.append((answer, body))
            done.set()

        call = self.start_call(header, on_answer, tensors)
        try:
            done.wait()
        finally:
            self.end_call(call)
        return got[0]

    def end_call(self, call):
        self._waiting.pop(call, None)

    def answer(self, header, body):
        """Passes an answer of the server to its `on_answer`."""
        waiting = self._waiting.get(header["call"])
        if waiting is not None:
            waiting(header, body)


def _pieces(views):
    """Puts zeros between tensors, up to the offset of each."""
    end = 0
    for offset, view in views:
        if offset > end:
            yield bytes(offset - end)
        yield view
        end = offset + view.nbytes
