"""
Memory of GPUs that the server shares with this process, for tensors that stay there. The server allocates all of it. Each
buffer has a number and the handle by which CUDA maps it here, once: it stays mapped until this process ends.
"""

import base64
import ctypes
import queue
import threading

import numpy as np

from . import server

_HANDLE_BYTES = 64
_OPEN_LAZILY = 1
_COPY_BY_ADDRESSES = 4


class _Handle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_uint8 * _HANDLE_BYTES)]


class GpuData:
    """The elements of a tensor in memory of a GPU, in C order. `owner` keeps the memory."""

    def __init__(self, device, address, size, owner):
        self.device = device
        self.address = address
        self.size = size
        self.owner = owner


class _Lent:
    """A buffer that the server has lent for a tensor. It goes back when nothing refers to it any more."""

    def __init__(self, memory, number, device):
        self._memory = memory
        self._number = number
        self._device = device

    def __del__(self):
        # The interpreter may free the object in the middle of a send. Another thread therefore notifies the server.
        self._memory.give_back(self._device, self._number)


class GpuMemory:
    """Maps and copies memory of GPUs by CUDA's runtime library."""

    def __init__(self, channel, library):
        """Raises OSError for a library that cannot be opened or finds no GPU."""
        self._channel = channel
        try:
            self._cuda = ctypes.CDLL(library)
        except OSError:
            # The server may have it in a folder that this environment does not see.
            self._cuda = ctypes.CDLL(library.rsplit("/", 1)[-1])
        cuda = self._cuda
        try:
            cuda.cudaGetErrorString.restype = ctypes.c_char_p
            cuda.cudaIpcOpenMemHandle.argtypes = [ctypes.POINTER(ctypes.c_void_p), _Handle, ctypes.c_uint]
            cuda.cudaMemcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
            cuda.cudaDeviceSynchronize.argtypes = []
        except AttributeError as error:
            raise OSError(str(error)) from None
        count = ctypes.c_int(0)
        self._check(cuda.cudaGetDeviceCount(ctypes.byref(count)))
        if count.value == 0:
            raise OSError("no GPU")
        self._mapped = {}
        self._mapping = threading.Lock()
        self._unused = queue.SimpleQueue()
        threading.Thread(target=self._tell, daemon=True, name="tritonjs-gpu").start()

    def of(self, place):
        """The elements of a tensor that the server has put into a buffer."""
        owner = _Lent(self, place["id"], place["device"])
        return GpuData(place["device"], self._address(place), place["size"], owner)

    def place(self, data):
        """Copies elements to a buffer of the server. Returns the number of the buffer; None if the server has no room."""
        place = server.ask("gpuMemory", data.device, data.size)
        if place is None:
            return None
        self._copy(data, self._address(place))
        return place["id"]

    def read(self, data):
        """Copies elements to memory of the CPU."""
        array = np.empty(data.size, np.uint8)
        self._copy(data, array.ctypes.data)
        return array

    def give_back(self, device, number):
        """Tells the server that a buffer is not used any more, after all work on its GPU."""
        self._unused.put((device, number))

    def _tell(self):
        while True:
            device, number = self._unused.get()
            self._cuda.cudaSetDevice(device)
            self._cuda.cudaDeviceSynchronize()
            try:
                self._channel.send({"type": "released", "gpu": number})
            except (OSError, RuntimeError):
                return

    def _copy(self, data, to):
        if data.size == 0:
            return
        self._check(self._cuda.cudaSetDevice(data.device))
        # The work that writes the elements may be on any stream.
        self._check(self._cuda.cudaDeviceSynchronize())
        self._check(self._cuda.cudaMemcpy(to, data.address, data.size, _COPY_BY_ADDRESSES))
        # A copy on the GPU itself may go on after the call.
        self._check(self._cuda.cudaDeviceSynchronize())

    def _address(self, place):
        with self._mapping:
            address = self._mapped.get(place["id"])
            if address is None:
                handle = _Handle.from_buffer_copy(base64.b64decode(place["handle"]))
                mapped = ctypes.c_void_p()
                self._check(self._cuda.cudaSetDevice(place["device"]))
                self._check(self._cuda.cudaIpcOpenMemHandle(ctypes.byref(mapped), handle, _OPEN_LAZILY))
                address = self._mapped[place["id"]] = mapped.value
            return address

    def _check(self, error):
        if error != 0:
            text = self._cuda.cudaGetErrorString(error).decode()
            raise OSError(text + " (CUDA error " + str(error) + ")")


class _Shared:
    memory = None


shared = _Shared()


def open_memory(channel, library):
    """Opens the memory. Returns True, or why that is not possible."""
    try:
        shared.memory = GpuMemory(channel, library)
        return True
    except OSError as error:
        return str(error)
