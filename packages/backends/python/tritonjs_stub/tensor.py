"""Tensors of requests and responses."""

import numpy as np

from . import dlpack, gpu_memory
from .byte_tensors import deserialize_bytes_tensor, serialize_byte_tensor
from .dtypes import NAMES, dtype_of, name_of
from .errors import TritonModelException, text


class Tensor:
    """A named tensor over a numpy array, over bytes from the server, or over memory of a GPU."""

    def __init__(self, name, numpy_array):
        if not isinstance(numpy_array, np.ndarray):
            raise TypeError("Tensor: expected a numpy array, got " + str(type(numpy_array)))
        name = _named(name)
        array = numpy_array
        datatype = name_of(array.dtype)
        if datatype is None:
            raise TritonModelException("NumPy dtype is not supported.")
        self._set(name, datatype, list(array.shape), array=np.ascontiguousarray(array).reshape(array.shape))

    def _set(self, name, datatype, shape, array=None, data=None, gpu=None):
        self._name = name
        self._datatype = datatype
        self._shape = shape
        self._array = array
        self._data = data
        self._gpu = gpu

    @classmethod
    def _make(cls, *args, **kwargs):
        tensor = cls.__new__(cls)
        tensor._set(*args, **kwargs)
        return tensor

    @classmethod
    def of(cls, wire, body):
        """Reads a tensor of a frame. The tensor is a view of the frame's body, or lies on a GPU."""
        if "gpu" in wire:
            return cls._make(wire["name"], wire["datatype"], wire["shape"], gpu=gpu_memory.shared.memory.of(wire["gpu"]))
        data = np.frombuffer(body, np.uint8, wire["size"], wire["offset"]) if wire["size"] > 0 else np.empty(0, np.uint8)
        return cls._make(wire["name"], wire["datatype"], wire["shape"], data=data)

    def wire(self):
        """Returns the header's entry for the tensor, and its bytes."""
        described = {"name": self._name, "datatype": self._datatype, "shape": self._shape}
        if self._gpu is not None:
            memory = gpu_memory.shared.memory
            place = memory.place(self._gpu) if self._gpu.size > 0 else None
            if place is None:
                return described, memory.read(self._gpu)
            described["gpu"] = place
            return described, b""
        if self._data is not None:
            return described, self._data
        if self._datatype == "BYTES":
            return described, serialize_byte_tensor(self._array)
        return described, self._array.reshape(-1).view(np.uint8)

    def name(self):
        return self._name

    def shape(self):
        return list(self._shape)

    def triton_dtype(self):
        return NAMES.index(self._datatype) + 1

    def is_cpu(self):
        return self._gpu is None

    def as_numpy(self):
        """Returns the elements as a writable array over the memory of the tensor."""
        if self._gpu is not None:
            raise TritonModelException("Tensor is stored in GPU and cannot be converted to NumPy.")
        if self._array is None:
            self._array = self._read()
        return self._array

    def _read(self):
        if self._datatype == "BF16":
            raise TritonModelException(
                "Tensor dtype is BF16 and cannot be converted to NumPy. Use to_dlpack() and from_dlpack() instead."
            )
        if self._datatype == "BYTES":
            array = deserialize_bytes_tensor(self._data).reshape(self._shape)
            # From here on the tensor is the array, because the model may change it.
            self._data = None
            return array
        return self._data.view(dtype_of(self._datatype)).reshape(self._shape)

    def to_dlpack(self):
        """Returns a DLPack capsule over the memory of the tensor."""
        if self._datatype == "BYTES":
            raise TritonModelException("DLPack does not have support for string tensors.")
        if self._gpu is not None:
            return dlpack.gpu_capsule(self._gpu, self._datatype, self._shape)
        if self._datatype == "BF16":
            return dlpack.bfloat16_capsule(self._data, self._shape)
        return dlpack.capsule_of(self.as_numpy())

    @staticmethod
    def from_dlpack(name, tensor):
        """Makes a tensor from a DLPack capsule, or from an object that gives one, for example a tensor of PyTorch."""
        name = _named(name)
        if not hasattr(tensor, "__dlpack__") and type(tensor).__name__ != "PyCapsule":
            raise TritonModelException(
                "Provided tensor is not supported. Tensor must be a DLPack capsule "
                "or have `__dlpack__` and `__dlpack_device__` attributes"
            )
        try:
            found = dlpack.read(tensor, gpu_memory.shared.memory is not None)
        except ValueError as error:
            raise TritonModelException(str(error)) from None
        if isinstance(found, dlpack.OnGpu):
            return Tensor._make(name, found.datatype, found.shape, gpu=found.data)
        if isinstance(found, tuple):
            data, shape = found
            return Tensor._make(name, "BF16", shape, data=data)
        return Tensor(name, found)

    def __dlpack__(self, stream=None, **_):
        return self.to_dlpack()

    def __dlpack_device__(self):
        return (1, 0) if self._gpu is None else (2, self._gpu.device)


def _named(name):
    name = text(name, "the name of a tensor")
    if name == "":
        raise TritonModelException("Tensor name cannot be an empty string.")
    return name
