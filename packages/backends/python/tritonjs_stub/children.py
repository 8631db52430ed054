"""
Requests to the server from processes that the model has forked: calls of other models, questions and lines for the log.
They go through the model's own process, over a connection that is opened at the first request.
"""

import array
import os
import queue
import socket
import threading

from . import calls, server
from .channel import Channel

_OF_CALLS = ("taken", "stop", "end")
# Metrics belong to the model's process, and end with its objects.
_NOT_ASKED = ("family", "metric")


class Children:
    """Accepts connections from processes that are forked later. They pass their ends through one pair of sockets."""

    def __init__(self, channel):
        self._channel = channel
        self._owner = os.getpid()
        self._door = None
        self._acceptor = None
        # Held only by the model's own process.
        self._opening = threading.Lock()
        os.register_at_fork(before=self._before, after_in_parent=self._in_parent, after_in_child=self._in_child)

    def _before(self):
        if self._door is None:
            with self._opening:
                self._door = self._door or socket.socketpair()

    def _in_parent(self):
        if os.getpid() != self._owner:
            return
        with self._opening:
            if self._acceptor is None:
                self._acceptor = threading.Thread(target=self._accept, daemon=True, name="tritonjs-children")
                self._acceptor.start()

    def _in_child(self):
        inner, outer = self._door
        inner.close()
        line = _ChildLine(outer, calls.line.channel.next_call())
        calls.line.channel = line
        server.line.channel = line
        # The model's process chooses the batch: a process of a pool is older than most batches.
        calls.line.newest_batch = -1

    def _accept(self):
        while True:
            descriptors = array.array("i")
            try:
                _, found, _, _ = self._door[0].recvmsg(1, socket.CMSG_SPACE(descriptors.itemsize))
            except OSError:
                return
            for _, _, data in found:
                descriptors.frombytes(data)
            for descriptor in descriptors:
                _Relay(self._channel, Channel(descriptor))


class _ChildLine:
    """The channel of a process that the model forked."""

    def __init__(self, door, first_call):
        self._door = door
        # Iterators that the fork has copied must not affect calls of the child.
        self._first_call = first_call
        self._opening = threading.Lock()
        self._channel = None

    def _open(self):
        with self._opening:
            if self._channel is None:
                theirs, own = socket.socketpair()
                with theirs:
                    rights = array.array("i", [theirs.fileno()])
                    self._door.sendmsg([b"."], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
                self._channel = Channel(own.detach(), self._first_call)
                threading.Thread(target=self._read, daemon=True, name="tritonjs-reader").start()
            return self._channel

    def _read(self):
        while True:
            frame = self._channel.receive()
            if frame is None:
                # The model's process has ended, and this process belongs to its group.
                os._exit(0)
            self._channel.answer(*frame)

    def next_call(self):
        return self._first_call if self._channel is None else self._channel.next_call()

    def send(self, header, tensors=()):
        kind = header["type"]
        if kind == "log":
            self._open().send(header)
        elif kind in _OF_CALLS and self._channel is not None:
            self._channel.send(header)

    def start_call(self, header, on_answer, tensors=()):
        _check(header)
        return self._open().start_call(header, on_answer, tensors)

    def call(self, header, tensors=()):
        _check(header)
        return self._open().call(header, tensors)

    def end_call(self, call):
        if self._channel is not None:
            self._channel.end_call(call)


def _check(header):
    if header["type"] == "infer" or (header["type"] == "ask" and header["what"] not in _NOT_ASKED):
        return
    raise RuntimeError("cannot do this in a process that the model forked: it can only call models and write to the log")


class _Relay:
    """Relays the requests of one process, and the answers. Each direction has a thread, so neither blocks the other."""

    def __init__(self, channel, child):
        self._channel = channel
        self._child = child
        # Numbers of calls in this process, by their numbers in the child.
        self._open = {}
        self._numbering = threading.Lock()
        self._answers = queue.SimpleQueue()
        for what in (self._read, self._answer):
            threading.Thread(target=what, daemon=True, name="tritonjs-child").start()

    def _read(self):
        while True:
            frame = self._child.receive()
            if frame is None:
                break
            header, body = frame
            if header["type"] == "log":
                self._channel.send(header)
            elif header["type"] in _OF_CALLS:
                self._about(header["type"], header["call"])
            else:
                self._start(header, body)
        for call in list(self._open):
            self._about("end", call)
        self._answers.put(None)

    def _start(self, header, body):
        theirs = header["call"]
        if header["type"] == "infer":
            # Like threads of the model, the child calls on behalf of the newest batch.
            header["batch"] = calls.line.newest_batch
            if header["batch"] is None:
                error = {"code": "INTERNAL", "message": "BLS is only supported during the 'execute' function."}
                self._answers.put((theirs, {"type": "answer", "last": True, "error": error}, b""))
                return

        def on_answer(answer, data):
            self._answers.put((theirs, answer, data))

        with self._numbering:
            tensors = _tensors(header.get("inputs") or header.get("files"), body)
            self._open[theirs] = self._channel.start_call(header, on_answer, tensors)

    def _about(self, kind, theirs):
        with self._numbering:
            call = self._open.get(theirs) if kind != "end" else self._open.pop(theirs, None)
        if call is None:
            return
        if kind == "end":
            self._channel.end_call(call)
        self._channel.send({"type": kind, "call": call})

    def _answer(self):
        while True:
            got = self._answers.get()
            if got is None:
                break
            theirs, answer, body = got
            if answer.get("last", True):
                with self._numbering:
                    self._channel.end_call(self._open.pop(theirs, None))
            try:
                self._child.send({**answer, "call": theirs}, _tensors(answer.get("outputs"), body))
            except OSError:
                # The child has ended. The reader detects that too.
                continue
        self._child.detach()


def _tensors(described, body):
    data = memoryview(body)
    return [(one, data[one["offset"] : one["offset"] + one["size"]]) for one in described or []]
