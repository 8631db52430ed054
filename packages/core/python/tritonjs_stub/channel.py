"""
Frames to and from the server.

    magic u32 | size of the header u32 | size of the body u64 | header (JSON) | body (the bytes of tensors)

The header gives the place of each tensor in the body. Offsets are multiples of 64. All numbers are little-endian.
"""

import itertools
import json
import os
import socket
import struct
import threading

_FRAME = struct.Struct("<IIQ")
_MAGIC = 0x4A535450
_ALIGNMENT = 64
# Largest number of buffers in one call of sendmsg.
_MOST_BUFFERS = 512

_open = []


def close_in_child():
    """Closes the connection in a process that the model forked."""
    for channel in list(_open):
        channel.detach()


class Channel:
    def __init__(self, descriptor, first_call=1):
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)
        self._sending = threading.Lock()
        self._calls = itertools.count(first_call)
        self._waiting = {}
        self._owner = os.getpid()
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            self._socket.setsockopt(socket.SOL_SOCKET, option, 4 << 20)
        _open.append(self)

    def detach(self):
        self._socket.close()
        if self in _open:
            _open.remove(self)

    def next_call(self):
        """Returns a new number for a call."""
        return next(self._calls)

    def send(self, header, tensors=()):
        """Sends a frame. `tensors` are pairs of a tensor's entry in the header and its bytes."""
        if os.getpid() != self._owner:
            raise RuntimeError("cannot answer a request from a process that the model forked")
        buffers, size = [], 0
        for described, data in tensors:
            view = memoryview(data).cast("B") if len(data) > 0 else memoryview(b"")
            padding = -size % _ALIGNMENT
            if padding > 0:
                buffers.append(memoryview(bytes(padding)))
            described["offset"] = size + padding
            described["size"] = view.nbytes
            buffers.append(view)
            size += padding + view.nbytes
        text = json.dumps(header, separators=(",", ":")).encode()
        start = _FRAME.pack(_MAGIC, len(text), size) + text
        with self._sending:
            self._send_all([memoryview(start), *(buffer for buffer in buffers if buffer.nbytes > 0)])

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
        start = self._read(bytearray(_FRAME.size))
        if start is None:
            return None
        _, header_size, body_size = _FRAME.unpack(start)
        header = self._read(bytearray(header_size))
        body = self._read(_memory(body_size)) if header is not None else None
        return None if body is None else (json.loads(bytes(header)), body)

    def _read(self, buffer):
        view = memoryview(buffer)
        got = 0
        while got < len(view):
            try:
                count = self._socket.recv_into(view[got:])
            except OSError:
                return None
            if count == 0:
                return None
            got += count
        return buffer

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


def _memory(size):
    """Allocates memory for a body with numpy, which does not fill it with zeros."""
    if size == 0:
        return bytearray()
    import numpy

    return memoryview(numpy.empty(size, numpy.uint8))
