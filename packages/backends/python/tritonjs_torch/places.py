"""Positions of a configuration's tensors among the arguments and results of `forward`, by Triton's conventions."""

import re

import triton_python_backend_utils as pb_utils
from tritonjs_stub.errors import StubError

def index_of(name):
    """The number after the first `__` of a name; None for a name without one."""
    _, separator, index = name.partition("__")
    return int(index) if separator and re.fullmatch("[0-9]+", index) else None


def argument_names(arguments, config, model):
    """Names of the arguments of `forward`, whose kinds and number are checked."""
    for argument in arguments[1:]:
        if argument.type.kind() == "DictType":
            raise StubError(
                "Multiple inputs of kind DictType were detected. Only a single input of type Dict(str, Tensor) is "
                "supported."
            )
    for argument in arguments:
        if argument.type.kind() not in ("TensorType", "ListType"):
            raise StubError(
                "An input of type '" + argument.type.str() + "' was detected in the model. Only a single input of type "
                "Dict(str, Tensor) or input(s) of type Tensor are supported."
            )
    expected = len(config["input"]) + len(_targets(config)) + len(_controls(config)) + len(_states(config))
    if len(arguments) != expected:
        raise StubError(
            "unable to load model '" + model + "', configuration expects " + str(expected) + " inputs, model provides "
            + str(len(arguments))
        )
    return [argument.name for argument in arguments]


def of_inputs(config, arguments, model):
    """Positions of all inputs: those of requests, computed ones, controls and states of sequences."""
    inputs = [tensor["name"] for tensor in config["input"]]
    named = inputs + _targets(config)
    if all(name in arguments for name in inputs):
        places = {name: arguments.index(name) for name in named if name in arguments}
        if _states(config):
            raise _not_indexed(model, "not all inputs and outputs follow")
    elif _follow(inputs, "input", model):
        places = {name: index_of(name) for name in named}
    elif _states(config):
        raise _not_indexed(model, "not all inputs and outputs follow")
    else:
        places = {name: index for index, name in enumerate(named)}
    for name in _controls(config):
        if index_of(name) is None:
            raise StubError("input '" + name + "' does not follow <name>__<index> naming convention.")
        places[name] = index_of(name)
    for state in _states(config):
        places[state["input_name"]] = _state_index(state["input_name"], model)
    if sorted(str(index) for index in places.values()) != sorted(str(index) for index in range(len(arguments))):
        raise StubError(
            "unable to load model '" + model + "': expected one input for each of the " + str(len(arguments))
            + " arguments of forward, got " + ", ".join("'" + name + "' for " + str(at) for name, at in places.items())
        )
    return places


def of_outputs(config, model):
    """Positions of all outputs and states."""
    outputs = [tensor["name"] for tensor in config["output"]]
    by_index = _follow(outputs, "output", model)
    if _states(config) and not by_index:
        raise _not_indexed(model, "not all inputs and outputs follow")
    places = {name: index_of(name) if by_index else index for index, name in enumerate(outputs)}
    for state in _states(config):
        places[state["output_name"]] = _state_index(state["output_name"], model)
    return places


def _follow(names, kind, model):
    """Whether all names end in an index. Otherwise the order of the configuration counts, and the log says so."""
    odd = [name for name in names if index_of(name) is None]
    if not odd:
        return True
    if kind == "input":
        text = (
            "input '" + odd[0] + "' or previous input(s) are neither an input argument to the model '" + model
            + "' nor do they follow the <name>__<index> naming convention. "
        )
    else:
        text = (
            "output '" + odd[0] + "' or previous output(s) of the model '" + model
            + "' do not follow the <name>__<index> naming convention. "
        )
    pb_utils.Logger.log_warn(text + "Falling back to enforcing strict ordering from model configuration.")
    return False


def _state_index(name, model):
    index = index_of(name)
    if index is None:
        raise _not_indexed(model, "state '" + name + "' does not follow")
    return index


def _not_indexed(model, what):
    return StubError(
        "PyTorch model '" + model + "' is using sequence batching with state but " + what
        + " the <name>__<index> naming convention. "
    )


def _targets(config):
    return [name for one in config.get("batch_input", ()) for name in one["target_name"]]


def _controls(config):
    return [one["name"] for one in config.get("sequence_batching", {}).get("control_input", ())]


def _states(config):
    return config.get("sequence_batching", {}).get("state", ())
