"""Modules of PyTorch with their weights, for configurations with `runtime: "model.py"`."""

import importlib.util
import json
import os

import torch

from tritonjs_stub.errors import StubError
from tritonjs_torch import script_module, tensors
from tritonjs_torch.settings import Parameters


def load(config, directory, device, model):
    """Loads `model.py` and the weights beside it, or the TorchScript file `model.pt`."""
    path = _path(config, directory)
    if not path.endswith(".py"):
        return script_module.load({**config, "default_model_filename": os.path.basename(path)}, directory, device, model)
    tensors.check_types(config, model)
    module = _class_of(path, "tritonjs_module")()
    if device is None:
        device = next((parameter.device for parameter in module.parameters()), None)
        if device is None:
            raise StubError("Cannot determine model device")
    weights = path[: -len(".py")] + ".pt"
    if os.path.exists(weights):
        # Other pickled objects than tensors would run code of the file.
        module.load_state_dict(torch.load(weights, map_location=device, weights_only=True))
    module.to(device)
    module.eval()
    return PythonModule(_compiled(module, config), config, device)


class PythonModule:
    def __init__(self, module, config, device):
        self._module = module
        self.device = device
        self._inputs = [tensor["name"] for tensor in config["input"]]
        self.output_places = {tensor["name"]: index for index, tensor in enumerate(config["output"])}

    def run(self, inputs):
        """Calls the module with tensors in the order of the configuration. Returns its outputs in a list."""
        answer = self._module(*(inputs[name] for name in self._inputs))
        return list(answer) if isinstance(answer, (tuple, list)) else [answer]


def _path(config, directory):
    names = ["model.py", "model.pt"]
    if config.get("default_model_filename"):
        names.insert(0, config["default_model_filename"])
    for name in names:
        path = os.path.join(directory, name)
        if os.path.exists(path):
            return path
    raise StubError("No model found in " + directory + "/" + str(names))


def _class_of(path, name):
    """The first class of a file that is a module of PyTorch. Classes that the file imports come last."""
    spec = importlib.util.spec_from_file_location(name, path)
    file = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(file)
    found = [one for one in vars(file).values() if isinstance(one, type) and issubclass(one, torch.nn.Module)]
    own = [one for one in found if one.__module__ == name]
    if not found:
        raise StubError("Cannot find a subclass of torch.nn.Module")
    return (own or found)[-1 if own else 0]


def _compiled(module, config):
    """The module compiled, if the configuration has options for it."""
    text = Parameters(config).text("TORCH_COMPILE_OPTIONAL_PARAMETERS")
    if text is None:
        return module
    options = json.loads(text)
    if "model" in options:
        raise StubError("'model' is not an optional parameter for 'torch.compile'")
    if not hasattr(torch, "compile"):
        raise StubError("TORCH_COMPILE_OPTIONAL_PARAMETERS needs torch 2 or newer, got torch " + torch.__version__)
    return torch.compile(module, **options)
