"""
Reads and makes DLPack capsules: of BF16 tensors here, because numpy has no type for them, and of others with numpy.
"""

import ctypes

import numpy as np

_BFLOAT = 4
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
    managed = _Managed()
    dims = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    managed.tensor = _Tensor(data.ctypes.data, _Device(1, 0), len(shape), _DataType(_BFLOAT, 16, 1), dims, None, 0)
    managed.deleter = _delete
    address = ctypes.addressof(managed)
    _held[address] = (managed, dims, data)
    return _new(address, _NAME, _destroy)


class _Holder:
    """An object that gives a capsule to numpy."""

    def __init__(self, capsule):
        self._capsule = capsule

    def __dlpack__(self, **_):
        return self._capsule

    def __dlpack_device__(self):
        return (1, 0)


def read(source):
    """
    Reads the tensor of a capsule, or of an object with `__dlpack__`, as an array; for BF16 as its bytes and its shape.

    Raises ValueError for memory outside the host, and for elements that are not contiguous.
    """
    capsule = source.__dlpack__() if hasattr(source, "__dlpack__") else source
    if not _is_valid(capsule, _NAME):
        raise ValueError("cannot use a DLPack capsule twice")
    managed = ctypes.cast(_pointer(capsule, _NAME), ctypes.POINTER(_Managed)).contents
    tensor = managed.tensor
    if tensor.device.type not in (1, 3):
        raise ValueError("expected a tensor in host memory (DLPack device " + str(tensor.device.type) + ")")
    shape = list(tensor.shape[: tensor.ndim])
    if not _is_contiguous(tensor, shape):
        raise ValueError(
            "DLPack tensor is not contiguous. Only contiguous DLPack tensors that are stored in C-Order are supported."
        )
    if tensor.dtype.code != _BFLOAT:
        return np.from_dlpack(_Holder(capsule))
    size = 2 * int(np.prod(shape, dtype=np.int64))
    copy = np.empty(size, np.uint8)
    ctypes.memmove(copy.ctypes.data, tensor.data + tensor.byte_offset if size > 0 else None, size)
    _rename(capsule, _USED)
    if managed.deleter:
        managed.deleter(ctypes.pointer(managed))
    return copy, shape


def _is_contiguous(tensor, shape):
    if not tensor.strides:
        return True
    expected = 1
    for axis in range(len(shape) - 1, -1, -1):
        if shape[axis] != 1 and tensor.strides[axis] != expected:
            return False
        expected *= shape[axis]
    return True
