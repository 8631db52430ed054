"""Runs models of the backend `pytorch`. The server joins the requests of a batch, so each call gets one request."""

import json
import os

import torch

import triton_python_backend_utils as pb_utils
from tritonjs_stub.errors import StubError
from tritonjs_torch import python_module, script_module, settings, tensors

_INVALID_ARG = pb_utils.TritonError.INVALID_ARG


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        self._device = _device(args)
        self._options = settings.Options(config, self._device)
        self._outputs = tensors.output_types(config)
        kind = python_module if config.get("runtime") == "model.py" else script_module
        with self._options.applied():
            self._module = kind.load(config, pb_utils.get_model_dir(), self._device, args["model_name"])

    def execute(self, requests):
        (request,) = requests
        inputs = {tensor.name(): tensors.to_torch(tensor, self._module.device) for tensor in request.inputs()}
        try:
            with self._options.applied():
                outputs = self._module.run(inputs)
        except Exception as error:
            return [_failed("PyTorch execute failure: " + str(error), pb_utils.TritonError.INTERNAL)]
        finally:
            self._options.ran()
        try:
            return [pb_utils.InferenceResponse(self._answer(outputs))]
        except StubError as error:
            return [_failed(str(error), _INVALID_ARG)]

    def _answer(self, outputs):
        answer = []
        for name, index in self._module.output_places.items():
            if index >= len(outputs):
                raise StubError(
                    "The output " + name + " in the model configuration refers to an output index which doesn't exist. "
                    "This model has " + str(len(outputs)) + " outputs"
                )
            answer.append(tensors.from_torch(name, outputs[index], self._outputs[name]))
        return answer


def _failed(message, code):
    return pb_utils.InferenceResponse(error=pb_utils.TritonError(message, code))


def _device(args):
    """The device of the instance; None for one that the model chooses."""
    kind = args["model_instance_kind"]
    if kind == "MODEL":
        return None
    if kind != "GPU":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise StubError(
            "instance '" + args["model_instance_name"] + "' is of KIND_GPU, but torch " + torch.__version__ + " in "
            + os.path.dirname(torch.__file__) + " cannot use a GPU: install a build of torch with CUDA, or use KIND_CPU"
        )
    return torch.device("cuda", int(args["model_instance_device_id"]))
