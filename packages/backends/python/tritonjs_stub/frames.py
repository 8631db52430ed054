"""
Frames between the server and this process.

    magic u32 | size of the header u32 | size of the body u48 | place u16 | header (JSON) | body (the bytes of tensors)

The body follows the header if the place is 0. Otherwise it is in that place of the memory that both processes share. The
header gives the place of each tensor in the body. Offsets are multiples of 64. All numbers are little-endian.
"""

import json
import struct

_START = struct.Struct("<IIQ")
_MAGIC = 0x4A535450
_PLACE_SHIFT = 48
_SIZE_MASK = (1 << _PLACE_SHIFT) - 1
# Larger frames are received into memory of their own.
_BUFFER_BYTES = 1 << 16

# Made once: `json.dumps` with separators makes an encoder each time.
_encode = json.JSONEncoder(separators=(",", ":")).encode
_decode = json.JSONDecoder().decode


def frame_start(header, size, place=0):
    """Returns the beginning of a frame, up to its body."""
    text = _encode(header).encode()
    return _START.pack(_MAGIC, len(text), size | place << _PLACE_SHIFT) + text


class FrameReader:
    """Receives frames from a socket. One call of the system may return several small frames."""

    def __init__(self, connection):
        self._receive_into = connection.recv_into
        # Set when both processes share memory.
        self.memory = None
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._first = 0
        self._end = 0

    def next(self):
        """Returns the next frame: its header, and its body as writable bytes. None when the server has ended."""
        if not self._fill(_START.size):
            return None
        _, header_size, size = _START.unpack_from(self._buffer, self._first)
        self._first += _START.size
        place = size >> _PLACE_SHIFT
        size &= _SIZE_MASK
        header = self._take(header_size, bytearray)
        if header is None:
            return None
        if place > 0:
            body = self.memory.body(place, size)
        else:
            body = self._take(size, _memory) if size > 0 else b""
            if body is None:
                return None
        return _decode(str(header, "utf-8")), body

    def _take(self, size, allocate):
        """Returns the next bytes as memory of their own."""
        if size <= _BUFFER_BYTES:
            if not self._fill(size):
                return None
            first, self._first = self._first, self._first + size
            return bytearray(self._buffer[first : self._first])
        whole = allocate(size)
        view = memoryview(whole)
        got = self._end - self._first
        view[:got] = self._buffer[self._first : self._end]
        self._first = self._end = 0
        while got < size:
            count = self._receive(view[got:])
            if count == 0:
                return None
            got += count
        return whole

    def _fill(self, size):
        """Receives until the buffer has this number of bytes. Returns False when the connection ends before."""
        if self._first == self._end:
            self._first = self._end = 0
        elif self._first + size > _BUFFER_BYTES:
            rest = bytes(self._buffer[self._first : self._end])
            self._first, self._end = 0, len(rest)
            self._buffer[: self._end] = rest
        while self._end - self._first < size:
            count = self._receive(self._buffer[self._end :])
            if count == 0:
                return False
            self._end += count
        return True

    def _receive(self, view):
        try:
            return self._receive_into(view)
        except OSError:
            return 0


def _memory(size):
    """Allocates memory for a body with numpy, which does not fill it with zeros."""
    import numpy

    return numpy.empty(size, numpy.uint8)
