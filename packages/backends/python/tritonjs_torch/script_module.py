"""TorchScript files."""

import os

import torch

from tritonjs_stub.errors import StubError
from tritonjs_torch import places, tensors


def load(config, directory, device, model):
    """Loads `model.pt`, or the file that the configuration names."""
    path = os.path.join(directory, config.get("default_model_filename") or "model.pt")
    tensors.check_types(config, model)
    try:
        script = torch.jit.load(path) if device is None else torch.jit.load(path, map_location=device)
    except Exception as error:
        text = "failed to load model '" + model + "': " + str(error).strip()
        if "constants.pkl" in text:
            text += "; expected TorchScript, as torch.jit.script(model).save writes it, got a file of torch.save"
        raise StubError(text) from None
    script.eval()
    return ScriptModule(script, config, device, model)


class ScriptModule:
    def __init__(self, script, config, device, model):
        self._script = script
        self.device = device
        arguments = [one for one in script.forward.schema.arguments if one.type.kind() != "ClassType"]
        self._takes_dict = len(arguments) == 1 and arguments[0].type.kind() == "DictType"
        if self._takes_dict:
            self._places = None
        else:
            names = places.argument_names(arguments, config, model)
            self._places = places.of_inputs(config, names, model)
        self.output_places = places.of_outputs(config, model)

    def run(self, inputs):
        """Calls `forward` with tensors by name. Returns its outputs in a list."""
        if self._takes_dict:
            return _outputs(self._script(inputs))
        arguments = [None] * len(self._places)
        for name, index in self._places.items():
            arguments[index] = inputs[name]
        return _outputs(self._script(*arguments))


def _outputs(answer):
    if isinstance(answer, tuple):
        return [_output(one, " at index " + str(index)) for index, one in enumerate(answer)]
    return [_output(answer, "")]


def _output(one, where):
    if isinstance(one, torch.Tensor):
        return one
    if isinstance(one, list) and all(isinstance(text, str) for text in one):
        return one
    raise ValueError(
        "output" + where + " must be of type Tensor, List[str] or Tuple containing one of these two types. It should not "
        "be a List / Dictionary of Tensors or a Scalar"
    )
