"""
Reads and makes DLPack capsules. NumPy's own functions would do so for most types, but not for BF16, and the arrays that
they make of capsules are read-only in most versions.
"""

import ctypes
import weakref

import numpy as np

from .dtypes import dtype_of, name_of
from .gpu_memory import GpuData

_CUDA = 2
_CUDA_MANAGED = 13
_BFLOAT = 4
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
_KINDS = {code: kind for kind, code in _CODES.items()}
_NAME = b"dltensor"
_USED = b"used_dltensor"


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]

_Destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_api = ctypes.pythonapi
_new = _api.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, _Destructor]
_is_valid = _api.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
_pointer = _api.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_rename = _api.PyCapsule_SetName
_rename.restype, _rename.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
# The destructor gets its capsule while it is freed, so the capsule's references must not be counted.
_raw_is_valid = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_raw_pointer = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))

# The memory that capsules point to, until they release it.
_held = {}


@_Deleter
def _delete(managed):
    _held.pop(ctypes.addressof(managed.contents), None)


@_Destructor
def _destroy(capsule):
    if _raw_is_valid(capsule, _NAME):
        _held.pop(_raw_pointer(capsule, _NAME), None)


def bfloat16_capsule(data, shape):
    """Makes a capsule over BF16 elements in host memory. `data` is an array of their bytes."""
    return _capsule(data, _DataType(_BFLOAT, 16, 1), shape)


def capsule_of(array):
    """Makes a capsule over the memory of an array of numbers in C order, which may be read-only."""
    return _capsule(array, _DataType(_CODES[array.dtype.kind], 8 * array.dtype.itemsize, 1), array.shape)


def gpu_capsule(data, datatype, shape):
    """Makes a capsule over elements on a GPU."""
    if datatype == "BF16":
        dtype = _DataType(_BFLOAT, 16, 1)
    else:
        numpy_type = dtype_of(datatype)
        dtype = _DataType(_CODES[numpy_type.kind], 8 * numpy_type.itemsize, 1)
    return _capsule_at(data.address, _Device(_CUDA, data.device), data, dtype, shape)


def _capsule(data, dtype, shape):
    return _capsule_at(data.ctypes.data, _Device(1, 0), data, dtype, shape)


def _capsule_at(pointer, device, data, dtype, shape):
    managed = _Managed()
    dims = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    managed.tensor = _Tensor(pointer, device, len(shape), dtype, dims, None, 0)
    managed.deleter = _delete
    address = ctypes.addressof(managed)
    _held[address] = (managed, dims, data)
    return _new(address, _NAME, _destroy)


class OnGpu:
    """The tensor of a capsule whose elements are on a GPU."""

    def __init__(self, data, datatype, shape):
        self.data = data
        self.datatype = datatype
        self.shape = shape


def read(source, takes_gpu=False):
    """
    Reads the tensor of a capsule, or of an object with `__dlpack__`, as a writable array over its memory; for BF16 as a
    copy of its bytes and its shape; for one on a GPU as OnGpu.

    Raises ValueError for memory outside the host and the GPUs, for elements that are not contiguous, and for a type that
    numpy lacks.
    """
    capsule = source.__dlpack__() if hasattr(source, "__dlpack__") else source
    if not _is_valid(capsule, _NAME):
        raise ValueError("cannot use a DLPack capsule twice")
    managed = ctypes.cast(_pointer(capsule, _NAME), ctypes.POINTER(_Managed)).contents
    tensor = managed.tensor
    is_gpu = takes_gpu and tensor.device.type in (_CUDA, _CUDA_MANAGED)
    if tensor.device.type not in (1, 3) and not is_gpu:
        raise ValueError("expected a tensor in host memory (DLPack device " + str(tensor.device.type) + ")")
    shape = list(tensor.shape[: tensor.ndim])
    if not _is_contiguous(tensor, shape):
        raise ValueError(
            "DLPack tensor is not contiguous. Only contiguous DLPack tensors that are stored in C-Order are supported."
        )
    is_bfloat = tensor.dtype.code == _BFLOAT
    try:
        dtype = np.dtype("u2" if is_bfloat else _KINDS[tensor.dtype.code] + str(tensor.dtype.bits // 8))
    except (KeyError, TypeError):
        raise ValueError("DLPack tensor has elements of a type that is not supported.") from None
    size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    if is_gpu:
        datatype = "BF16" if is_bfloat else name_of(dtype)
        if datatype is None:
            raise ValueError("DLPack tensor has elements of a type that is not supported.")
        _rename(capsule, _USED)
        data = GpuData(tensor.device.id, (tensor.data or 0) + tensor.byte_offset, size, managed)
        # What refers to the elements refers to `data`, so the tensor is released with the last of these.
        weakref.finalize(data, _release, managed).atexit = False
        return OnGpu(data, datatype, shape)
    memory = (ctypes.c_uint8 * size).from_address(tensor.data + tensor.byte_offset) if size > 0 else (ctypes.c_uint8 * 0)()
    _rename(capsule, _USED)
    # The array refers to `memory`, so the tensor is released with the last array over it.
    weakref.finalize(memory, _release, managed).atexit = False
    array = np.frombuffer(memory, dtype).reshape(shape)
    return (array.reshape(-1).view(np.uint8).copy(), shape) if is_bfloat else array


def _release(managed):
    if managed.deleter:
        managed.deleter(ctypes.pointer(managed))


def _is_contiguous(tensor, shape):
    if not tensor.strides or 0 in shape:
        return True
    expected = 1
    for axis in range(len(shape) - 1, -1, -1):
        if shape[axis] != 1 and tensor.strides[axis] != expected:
            return False
        expected *= shape[axis]
    return True
