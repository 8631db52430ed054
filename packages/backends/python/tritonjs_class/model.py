"""Runs a class with `predict`, and with `load` if it has one."""

import asyncio
import importlib.util
import inspect
import json
import os
import sys

import numpy as np
import triton_python_backend_utils as pb_utils

from . import declarations


def model_of_class(text):
    """Returns the class of a Python model that runs the class that the settings name."""
    settings = json.loads(text)

    class TritonPythonModel(ClassModel):
        pass

    TritonPythonModel.settings = settings
    return TritonPythonModel


class ClassModel:
    settings = None

    @classmethod
    def auto_complete_config(cls, config):
        written = config.as_dict()
        served = load_class(cls.settings)
        size = int(written.get("max_batch_size", 0)) or int(getattr(served, "max_batch_size", 0) or 0)
        inputs, outputs = declarations.tensors_of(served, cls.settings, size > 0)
        if not written.get("input"):
            for tensor in inputs:
                config.add_input(tensor)
        if not written.get("output"):
            for tensor in outputs:
                config.add_output(tensor)
        if size > 0:
            config.set_max_batch_size(size)
            config.set_dynamic_batching()
        return config

    def initialize(self, args):
        config = json.loads(args["model_config"])
        self._inputs = [tensor["name"] for tensor in config["input"]]
        self._datatypes = {tensor["name"]: tensor["data_type"][len("TYPE_") :] for tensor in config["input"]}
        self._types = {
            tensor["name"]: pb_utils.triton_string_to_numpy(tensor["data_type"]) for tensor in config["output"]
        }
        self._dims = {tensor["name"]: tensor["dims"] for tensor in config["output"]}
        self._batches = int(config.get("max_batch_size", 0)) > 0
        self._loop = asyncio.new_event_loop()
        served = load_class(self.settings)
        parameters = {key: value["string_value"] for key, value in config.get("parameters", {}).items()}
        self._model = declarations.construct(served, args["model_name"], self.settings, parameters)
        self._feature_names = list(getattr(served, "feature_names", None) or [])
        self._answers_requests = declarations.takes_requests(served)
        self._takes_names = len(self._inputs) == 1 and _parameters(self._model.predict) != 1
        load = getattr(self._model, "load", None)
        if load is not None:
            self._settled(load())

    def execute(self, requests):
        if not self._batches or self._answers_requests or len(requests) == 1:
            return [self._answered(request) for request in requests]
        try:
            rows = [request.inputs()[0].as_numpy().shape[0] for request in requests]
            parts = [self._values(request) for request in requests]
            together = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
            outputs = self._outputs(self._call(together), sum(rows))
        except Exception as error:
            failed = pb_utils.TritonError(_text(error))
            return [pb_utils.InferenceResponse(error=failed) for _ in requests]
        responses, first = [], 0
        for count in rows:
            own = [pb_utils.Tensor(name, value[first : first + count]) for name, value in outputs.items()]
            responses.append(pb_utils.InferenceResponse(own))
            first += count
        return responses

    def finalize(self):
        unload = getattr(self._model, "unload", None)
        if unload is not None:
            self._settled(unload())
        self._loop.close()

    def _answered(self, request):
        try:
            values = self._values(request)
            if self._answers_requests:
                returned = self._settled(self._model.predict(declarations.payload(request.request_id(), values, self._datatypes)))
                outputs = self._outputs(self._renamed(declarations.arrays(returned)))
            else:
                rows = next(iter(values.values())).shape[0] if self._batches else None
                outputs = self._outputs(self._call(values), rows)
            return pb_utils.InferenceResponse([pb_utils.Tensor(name, value) for name, value in outputs.items()])
        except Exception as error:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(_text(error)))

    def _values(self, request):
        given = {tensor.name(): tensor.as_numpy() for tensor in request.inputs()}
        return {name: given[name] for name in self._inputs if name in given}

    def _call(self, values):
        if len(self._inputs) > 1:
            return self._settled(self._model.predict(**values))
        (value,) = values.values()
        if self._takes_names:
            return self._settled(self._model.predict(value, self._feature_names))
        return self._settled(self._model.predict(value))

    def _outputs(self, returned, rows=None):
        """The outputs of `predict` by name, as arrays of the configured types."""
        names = list(self._types)
        if isinstance(returned, dict):
            named = returned
        elif isinstance(returned, (list, tuple)) and len(names) > 1:
            if len(returned) != len(names):
                raise ValueError(
                    "predict returned " + str(len(returned)) + " outputs: expected " + str(len(names))
                    + " (" + ", ".join(names) + ")"
                )
            named = dict(zip(names, returned))
        else:
            named = {names[0]: returned}
        outputs = {}
        for name, value in named.items():
            if name not in self._types:
                raise ValueError("predict returned an unknown output '" + name + "': expected " + ", ".join(names))
            array = _array(value, self._types[name])
            rank = len(self._dims[name]) + (1 if self._batches else 0)
            if array.ndim == rank - 1 and int(self._dims[name][-1]) in (1, -1):
                # One value for each row.
                array = array.reshape(array.shape + (1,))
            if rows is not None and (array.ndim == 0 or array.shape[0] != rows):
                raise ValueError(
                    "output '" + name + "' of predict: expected " + str(rows) + " rows, got shape "
                    + str(list(array.shape))
                )
            outputs[name] = array
        return outputs

    def _renamed(self, outputs):
        """Outputs of a response under the configured names, by position if none of them has such a name."""
        names = list(self._types)
        if len(names) != len(outputs) or any(name in self._types for name in outputs):
            return outputs
        return dict(zip(names, outputs.values()))

    def _settled(self, value):
        return self._loop.run_until_complete(value) if inspect.isawaitable(value) else value


def load_class(settings):
    """Imports the file of a class, as its own directory would see it."""
    path, name = settings["file"], settings["className"]
    if settings["isOurs"]:
        path = os.path.join(os.path.dirname(__file__), path)
    for place in (settings["folder"], os.path.dirname(path)):
        if place not in sys.path:
            sys.path.append(place)
    stand_ins = os.path.join(os.path.dirname(__file__), "stand_ins")
    if stand_ins not in sys.path:
        # At the end: an installed package of the same name comes first.
        sys.path.append(stand_ins)
    module_name = os.path.splitext(os.path.basename(path))[0]
    module = sys.modules.get(module_name)
    if module is None or getattr(module, "__file__", None) != path:
        spec = importlib.util.spec_from_file_location(module_name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[module_name]
            raise
    served = getattr(module, name, None)
    if not inspect.isclass(served):
        classes = [key for key, value in vars(module).items() if inspect.isclass(value)]
        raise ValueError(
            "expected a class '" + name + "' in " + path + ", which has " + (", ".join(classes) or "none")
        )
    if not callable(getattr(served, "predict", None)):
        raise ValueError("expected class '" + name + "' of " + path + " to have a method predict, got none")
    return served


def _parameters(method):
    """Number of positional parameters, without `self`; -1 for any number."""
    kinds = [parameter.kind for parameter in inspect.signature(method).parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return -1
    return sum(1 for kind in kinds if kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD))


def _array(value, dtype):
    if dtype is not np.object_:
        return np.ascontiguousarray(np.asarray(value), dtype=dtype)
    array = np.asarray(value, dtype=object)
    encode = np.vectorize(lambda one: one.encode() if isinstance(one, str) else one, otypes=[object])
    return encode(array) if array.size else array


def _text(error):
    return type(error).__name__ + ": " + str(error)
