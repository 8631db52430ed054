"""BYTES tensors on the wire: each element after its length, a u32."""

import struct

import numpy as np

_LENGTH = struct.Struct("<I")


def serialize_byte_tensor(input_tensor):
    """Serializes an array of strings or bytes. Returns None for an array of any other type."""
    if input_tensor.size == 0:
        return ()
    if input_tensor.dtype != np.object_ and input_tensor.dtype.type != np.bytes_:
        return None
    pieces = []
    for element in input_tensor.reshape(-1).tolist():
        data = element if type(element) is bytes else str(element).encode("utf-8")
        pieces.append(_LENGTH.pack(len(data)))
        pieces.append(data)
    return b"".join(pieces)


def deserialize_bytes_tensor(encoded_tensor):
    """Deserializes a tensor to an array of bytes objects."""
    data = bytes(encoded_tensor)
    elements = []
    offset = 0
    while offset < len(data):
        (length,) = _LENGTH.unpack_from(data, offset)
        offset += 4
        if offset + length > len(data):
            raise ValueError("a string of " + str(length) + " bytes ends after its tensor")
        elements.append(data[offset : offset + length])
        offset += length
    array = np.empty(len(elements), np.object_)
    array[:] = elements
    return array
