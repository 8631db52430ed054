"""Between tensors of the server and those of torch."""

import numpy as np
import torch

import triton_python_backend_utils as pb_utils
from tritonjs_stub.errors import StubError

_TYPES = {
    "TYPE_BOOL": torch.bool,
    "TYPE_UINT8": torch.uint8,
    "TYPE_INT8": torch.int8,
    "TYPE_INT16": torch.int16,
    "TYPE_INT32": torch.int32,
    "TYPE_INT64": torch.int64,
    "TYPE_FP16": torch.float16,
    "TYPE_FP32": torch.float32,
    "TYPE_FP64": torch.float64,
}
_NAMES = {torch_type: name for name, torch_type in _TYPES.items()}


def check_types(config, model):
    """Refuses tensors of types that torch does not have, and text in more than one dimension."""
    batched = config.get("max_batch_size", 0) > 0
    for kind, what in (("input", "input"), ("output", "output")):
        for tensor in config.get(kind, ()):
            dims = tensor["reshape"]["shape"] if "reshape" in tensor else tensor["dims"]
            _check(tensor["data_type"], dims, batched, what, tensor["name"], model)
    for state in config.get("sequence_batching", {}).get("state", ()):
        _check(state["data_type"], state["dims"], batched, "input state", state["input_name"], model)


def _check(data_type, dims, batched, what, name, model):
    if data_type == "TYPE_STRING":
        if len(dims) + batched > 1:
            direction = "output" if what == "output" else "input"
            raise StubError(
                "Triton only supports 1 dimensional List of String as " + direction + " for '" + name + "' for model '"
                + model + "'"
            )
    elif data_type not in _TYPES:
        raise StubError("unsupported datatype " + data_type + " for " + what + " '" + name + "' for model '" + model + "'")


def output_types(config):
    """The data types of outputs and states, by name."""
    states = config.get("sequence_batching", {}).get("state", ())
    types = {state["output_name"]: state["data_type"] for state in states}
    types.update((output["name"], output["data_type"]) for output in config.get("output", ()))
    return types


def to_torch(tensor, device):
    """Returns a tensor of torch, or a list of str for text."""
    array = tensor.as_numpy()
    if array.dtype == np.object_:
        return [element.decode("utf-8") for element in array.reshape(-1)]
    made = torch.from_numpy(np.require(array, requirements=("C", "A", "W")))
    return made if device is None else made.to(device)


def from_torch(name, value, data_type):
    """Returns a tensor for the server."""
    if isinstance(value, list):
        texts = np.empty(len(value), np.object_)
        texts[:] = value
        return pb_utils.Tensor(name, _checked(name, texts, "TYPE_STRING", data_type))
    found = _NAMES.get(value.dtype, "TYPE_" + str(value.dtype).split(".")[-1].upper())
    if value.dim() == 0:
        raise StubError("output '" + name + "' is a scalar which is not supported.")
    _checked(name, None, found, data_type)
    return pb_utils.Tensor(name, value.detach().cpu().contiguous().numpy())


def _checked(name, value, found, expected):
    if found != expected:
        raise StubError(
            "configuration expects datatype " + expected + " for output '" + name + "', model provides " + found
        )
    return value
