"""Data types by Triton's number, by name and in numpy."""

import numpy as np

# By Triton's number, from 1.
NAMES = (
    "BOOL",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "FP16",
    "FP32",
    "FP64",
    "BYTES",
    "BF16",
)

_NUMPY = {
    "BOOL": np.bool_,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "FP16": np.float16,
    "FP32": np.float32,
    "FP64": np.float64,
    "BYTES": np.object_,
}

_DTYPES = {name: np.dtype(numpy) for name, numpy in _NUMPY.items()}
_BY_DTYPE = {dtype: name for name, dtype in _DTYPES.items()}


def dtype_of(name):
    """Returns the numpy dtype of a data type other than BF16."""
    return _DTYPES[name]


def name_of(dtype):
    """Returns the data type of a numpy dtype; None for a dtype that tensors cannot have."""
    dtype = np.dtype(dtype)
    return "BYTES" if dtype.kind == "S" else _BY_DTYPE.get(dtype)


def triton_string_to_numpy(triton_type_string):
    """Returns the numpy type of a configuration's data type: `TYPE_FP32`."""
    if triton_type_string == "TYPE_BOOL":
        return bool
    return _NUMPY["BYTES" if triton_type_string == "TYPE_STRING" else triton_type_string[len("TYPE_") :]]


def triton_to_numpy_type(data_type):
    """Returns the numpy type of one of Triton's numbers; None for an unknown number."""
    return _NUMPY.get(NAMES[data_type - 1]) if 0 < data_type <= len(NAMES) else None


def numpy_to_triton_type(data_type):
    """Returns Triton's number of a numpy type; None for an unknown type."""
    name = name_of(data_type)
    return None if name is None else NAMES.index(name) + 1
