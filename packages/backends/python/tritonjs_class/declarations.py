"""What a class says of itself: its tensors, what its constructor takes, and whether it answers requests of MLServer."""

import inspect
import sys
import typing

import numpy as np
import triton_python_backend_utils as pb_utils


def tensors_of(served, settings, batches):
    """The inputs and outputs of a class: those that it declares, else those of its types, else one FP64 each."""
    described = getattr(served, "describe", None)
    if settings["isOurs"] and described is not None:
        return described(settings, batches)
    declared = [_declared(served, where) for where in ("inputs", "outputs")]
    if takes_requests(served) and hasattr(served.predict, "__wrapped__"):
        inputs, outputs = _arguments(served.predict, batches)
        return [declared[0] or inputs, declared[1] or outputs]
    hinted = _hinted(served)
    return [
        declared[i] if declared[i] is not None else [_tensor(where + "_1", hinted[i], batches)]
        for i, where in enumerate(("INPUT", "OUTPUT"))
    ]


def construct(served, model_name, settings, parameters):
    """Creates the model. Its constructor gets what it names: settings of MLServer, or parameters of the configuration."""
    if takes_requests(served):
        return served(_model_settings(model_name, settings, parameters))
    if settings["isOurs"]:
        return served(settings)
    named = inspect.signature(served).parameters
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in named.values()):
        return served(**parameters)
    return served(**{name: parameters[name] for name in named if name in parameters})


def takes_requests(served):
    """True for a class of MLServer, whose `predict` gets a whole request and returns a response."""
    mlserver = sys.modules.get("mlserver")
    return mlserver is not None and issubclass(served, mlserver.MLModel)


def payload(request_id, values, datatypes):
    """A request as MLServer has it."""
    from mlserver import types

    inputs = []
    for name, value in values.items():
        datatype = "BYTES" if datatypes[name] == "STRING" else datatypes[name]
        data = value.ravel().tolist()
        inputs.append(types.RequestInput(name=name, shape=list(value.shape), datatype=datatype, data=data))
    return types.InferenceRequest(id=request_id or None, inputs=inputs)


def arrays(response):
    """The outputs of a response of MLServer by name."""
    outputs = {}
    for output in response.outputs:
        data = getattr(output.data, "root", output.data)
        if output.datatype == "BYTES":
            data = np.array([one.encode() if isinstance(one, str) else one for one in data], dtype=object)
        outputs[output.name] = np.asarray(data).reshape(list(output.shape))
    return outputs


def _declared(served, where):
    specs = getattr(served, where, None)
    if specs is None:
        return None
    if not isinstance(specs, (list, tuple)) or not all(isinstance(spec, dict) for spec in specs):
        raise ValueError(where + " of class '" + served.__name__ + "': expected a list of dicts with dtype and shape")
    names = [spec.get("name") for spec in specs]
    if any(names) and not all(names):
        raise ValueError(
            where + " of class '" + served.__name__ + "': [" + str([bool(name) for name in names].index(False))
            + "] has no name, but others have one: name all of them or none"
        )
    tensors = []
    for position, spec in enumerate(specs, 1):
        dtype = spec.get("dtype", spec.get("datatype"))
        if dtype is None or "shape" not in spec:
            raise ValueError(
                where + " of class '" + served.__name__ + "': [" + str(position - 1) + "] lacks its dtype or its shape"
            )
        name = spec.get("name") or where[:-1].upper() + "_" + str(position)
        tensors.append({"name": name, "data_type": "TYPE_" + _word(dtype), "dims": list(spec["shape"])})
    return tensors


def _word(dtype):
    """The data type of a configuration: of `FP32`, of `np.float32` and of `float`."""
    if isinstance(dtype, str) and dtype.isupper():
        return "STRING" if dtype == "BYTES" else dtype
    kind = pb_utils.np_to_triton_dtype(np.dtype(dtype).type) if dtype not in (str, bytes) else "BYTES"
    return "STRING" if kind == "BYTES" else kind


def _hinted(served):
    """`STRING` for a parameter or a result of strings, `FP64` for anything else."""
    try:
        hints = typing.get_type_hints(served.predict)
    except Exception:
        return "FP64", "FP64"
    takes = [name for name in inspect.signature(served.predict).parameters if name != "self"]
    return _kind(hints.get(takes[0]) if takes else None), _kind(hints.get("return"))


def _arguments(predict, batches):
    """The tensors of a `predict` that `decode_args` decodes: an input for each argument."""
    hints = typing.get_type_hints(predict)
    inputs = [
        _tensor(name, _kind(hints.get(name)), batches)
        for name in inspect.signature(predict).parameters
        if name != "self"
    ]
    returned = hints.get("return")
    results = typing.get_args(returned) if typing.get_origin(returned) is tuple else (returned,)
    return inputs, [_tensor("output-" + str(i), _kind(one), batches) for i, one in enumerate(results)]


def _kind(hint):
    return "STRING" if hint in (str, bytes) or set(typing.get_args(hint)) & {str, bytes} else "FP64"


def _tensor(name, kind, batches):
    dims = [-1] if kind == "STRING" else [-1, -1]
    return {"name": name, "data_type": "TYPE_" + kind, "dims": (dims[1:] or [1]) if batches else dims}


def _model_settings(model_name, settings, parameters):
    from mlserver import ModelSettings
    from mlserver.settings import ModelParameters

    uri = settings.get("uri")
    return ModelSettings(
        name=model_name,
        implementation=MODEL_CLASS,
        parameters=ModelParameters(uri=uri, extra={key: value for key, value in parameters.items() if key != "uri"}),
    )


MODEL_CLASS = "mlserver.MLModel"
