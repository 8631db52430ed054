"""
Memory that this process shares with the server, for the tensors of large messages. It is made of two files without a
name, one for each direction. So it is gone when both processes are.

A file has a counter for each of its places, then the places. The body of a message lies in one place. The sender takes
a place that the receiver has released as often as the sender has used it.
"""

import mmap
import os
import weakref

# The server has the same numbers (tensor-memory.ts).
PLACES = 16
PLACE_BYTES = 32 << 20
_START_BYTES = 4096
_FILE_BYTES = _START_BYTES + PLACES * PLACE_BYTES
_NONCE_AT = 2048
# Pages of larger messages go back to the system.
_KEPT_BYTES = 4 << 20


def open_memory():
    """Makes the memory. Returns None on a system without files in memory."""
    try:
        return TensorMemory()
    except (AttributeError, OSError, ValueError):
        return None


class _File:
    def __init__(self):
        # Closed in processes that the model starts, but not in those that it forks.
        self.descriptor = os.memfd_create("tritonjs", os.MFD_CLOEXEC)
        os.ftruncate(self.descriptor, _FILE_BYTES)
        self.mapping = mmap.mmap(self.descriptor, _FILE_BYTES)
        self.counts = memoryview(self.mapping)[: 4 * PLACES].cast("I")

    def drop_pages(self, place, size):
        """Gives the pages of a place back to the system if they are many."""
        if size > _KEPT_BYTES and hasattr(mmap, "MADV_REMOVE"):
            try:
                self.mapping.madvise(mmap.MADV_REMOVE, _offset(place), size)
            except OSError:
                pass


class TensorMemory:
    """The memory of both directions. One thread at a time may use each direction."""

    def __init__(self):
        import numpy

        self._inputs = _File()
        self._outputs = _File()
        self._bytes = numpy.frombuffer(self._outputs.mapping, numpy.uint8)
        self._address = numpy.frombuffer(self._inputs.mapping, numpy.uint8).ctypes.data
        self._as_array = numpy.asarray
        self._nonce = os.urandom(16)
        for file in (self._inputs, self._outputs):
            file.mapping[_NONCE_AT : _NONCE_AT + 16] = self._nonce
        # How often each place for outputs was used, and the bytes of its last use.
        self._uses = [0] * PLACES
        self._sizes = [0] * PLACES
        # Bodies of requests that the model still uses.
        self._bodies = weakref.WeakSet()
        os.register_at_fork(before=self._pin)

    def describe(self):
        """How the server finds the files. The nonce proves that it found these."""
        files = [self._inputs.descriptor, self._outputs.descriptor]
        return {"process": os.getpid(), "files": files, "nonce": self._nonce.hex()}

    def body(self, place, size):
        """Returns the bytes of a received body. Its place is released when no array uses them any more."""
        body = _Body(self._inputs, place - 1, self._address + _offset(place - 1), size)
        self._bodies.add(body)
        return self._as_array(body)

    def place_for(self, size):
        """Returns a free place for a body of this size, from 1; 0 if there is none."""
        if size > PLACE_BYTES:
            return 0
        counts = self._outputs.counts
        for place in range(PLACES):
            if counts[place] == self._uses[place] & 0xFFFFFFFF:
                self._uses[place] += 1
                self._sizes[place] = size
                return place + 1
        return 0

    def write(self, place, offset, data):
        """Copies the bytes of a tensor to a place."""
        first = _offset(place - 1) + offset
        self._bytes[first : first + data.nbytes] = data

    def tidy(self):
        """Gives pages of large bodies that the server has read back to the system."""
        for place, size in enumerate(self._sizes):
            if size > _KEPT_BYTES and self._outputs.counts[place] == self._uses[place] & 0xFFFFFFFF:
                self._outputs.drop_pages(place, size)
                self._sizes[place] = 0

    def _pin(self):
        """Keeps the places of bodies in use for good before a fork, because the new process may read them at any time."""
        for body in list(self._bodies):
            body.pinned = True


class _Body:
    """The owner of a received body. All arrays over its bytes refer to it."""

    def __init__(self, file, place, address, size):
        self._file = file
        self._place = place
        self._size = size
        self.pinned = False
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (size,), "data": (address, False)}

    def __del__(self):
        if self.pinned:
            return
        self._file.drop_pages(self._place, self._size)
        counts = self._file.counts
        counts[self._place] = (counts[self._place] + 1) & 0xFFFFFFFF


def _offset(place):
    return _START_BYTES + place * PLACE_BYTES
