"""Exports a model of PyTorch to ONNX: TorchScript (`torch.jit.save`), or a program of `torch.export` (`.pt2`).

    python torch_to_onnx.py model.pt model.onnx < settings.json

The settings are {"inputs": {name: {"shape": [...], "dtype": "FP32"}}, "rows": true, "opset": 17}; shapes have no rows
where `rows` is true. A program of `torch.export` has shapes and types of its own, which `inputs` may override. Beside the ONNX file it writes <model.onnx>.samples.json: inputs, and the outputs of PyTorch for
them. A fault is one line on stderr that begins with `error: `, and the exit code 3.
"""

import base64
import inspect
import json
import re
import sys
import zipfile

LEAST_EXPORT = (2, 1)

TYPES = {
    "FP32": "float32",
    "FP64": "float64",
    "FP16": "float16",
    "INT64": "int64",
    "INT32": "int32",
    "INT8": "int8",
    "UINT8": "uint8",
    "BOOL": "bool",
}


class Fault(Exception):
    pass


def version_of(torch):
    return tuple(int("".join(c for c in part if c.isdigit()) or 0) for part in torch.__version__.split("+")[0].split(".")[:2])


def kind_of(path):
    if not zipfile.is_zipfile(path):
        return "pickle"
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    if any("/code/" in name or name.endswith("constants.pkl") for name in names):
        return "script"
    if any(name.endswith(("exported_program.json", "serialized_exported_program.json", "archive_format")) or "/models/" in name for name in names):
        return "export"
    return "pickle"


def load(torch, path):
    """The model, the form of it that a trace can record, the names of its inputs, and examples of those in the file."""
    kind = kind_of(path)
    if kind == "pickle":
        raise Fault(
            "expected TorchScript or a program of torch.export, got weights or a pickled module, which have no graph; "
            "save torch.jit.trace(model, inputs) by torch.jit.save"
        )
    if kind == "export":
        if version_of(torch) < LEAST_EXPORT or not hasattr(torch, "export"):
            raise Fault(
                "a program of torch.export needs torch %d.%d or newer, got %s; save TorchScript instead: "
                "torch.jit.save(torch.jit.trace(model, inputs), 'model.pt')" % (*LEAST_EXPORT, torch.__version__)
            )
        return program_of(torch, torch.export.load(path))
    model = torch.jit.load(path, map_location="cpu").eval()
    return model, model, [argument.name for argument in model.forward.schema.arguments[1:]], {}


def program_of(torch, program):
    names = list(program.graph_signature.user_inputs)
    args, kwargs = program.example_inputs
    examples = [*args, *kwargs.values()]
    if len(names) != len(examples) or not all(isinstance(one, torch.Tensor) for one in examples):
        raise Fault("expected a program whose inputs are tensors, got lists, mappings or constants among them")
    # The module checks its inputs by the program's own sizes; a trace cannot record that.
    models = [by_place(torch, one, len(args), list(kwargs)) for one in (program.module(), traceable(torch, program.module()))]
    return (*models, names, dict(zip(names, examples)))


def by_place(torch, model, count, keys):
    """The module with all inputs by their places, and with a tuple of tensors as its output."""

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *inputs):
            return tuple(flat(torch, self.model(*inputs[:count], **dict(zip(keys, inputs[count:])))))

    return Module()


# Operators whose sizes may follow from those of an input. Only the methods of tensors and the functions of torch pass
# such sizes on in a trace.
SIZED = {"view", "reshape", "expand", "repeat", "new_zeros", "new_ones", "new_full", "new_empty", "narrow"}
MADE = {"zeros", "ones", "full", "empty", "arange"}


def traceable(torch, module):
    """Replaces what a trace cannot record: sizes as symbols, and the assertions about them."""
    for node in list(module.graph.nodes):
        name = getattr(node.target, "__name__", str(node.target)).split(".")[0]
        if node.op == "call_function" and name == "sym_size":
            node.op, node.target = "call_method", "size"
        elif node.op == "call_function" and name in SIZED and hasattr(torch.Tensor, name):
            node.op, node.target = "call_method", name
        elif node.op == "call_function" and name in MADE:
            node.target = getattr(torch, name)
        elif node.op == "call_function" and name == "unflatten":
            # The exporter does not know its rank.
            sizes = [size if isinstance(size, int) else -1 for size in node.meta["val"].shape]
            if sizes.count(-1) <= 1:
                node.op, node.target, node.args = "call_method", "reshape", (node.args[0], sizes)
        elif re.match(r"_assert|_guards|sym_constrain", name) and not node.users:
            module.graph.erase_node(node)
    module.graph.eliminate_dead_code()
    return torch.fx.GraphModule(module, module.graph)


def type_of(tensor):
    kind = str(tensor.dtype).split(".")[-1]
    for name, one in TYPES.items():
        if one == kind:
            return name
    raise Fault("the type %s is not exported" % kind)


def random_input(torch, shape, dtype, generator):
    kind = getattr(torch, TYPES[dtype])
    if dtype.startswith("FP"):
        return torch.randn(shape, generator=generator).to(kind)
    # Small numbers: rows of a table, or booleans.
    return torch.randint(0, 2, shape, generator=generator).to(kind)


def inputs_for(torch, names, examples, settings, rows, generator):
    given = settings["inputs"]
    made = []
    for name in names:
        if name not in given and name in examples:
            example = examples[name]
            shape = [rows, *example.shape[1:]] if settings["rows"] else example.shape
            made.append(random_input(torch, shape, type_of(example), generator))
            continue
        if name not in given:
            known = ", ".join("--shape %s:<sizes>" % one for one in names)
            raise Fault("input '%s': expected its shape, because PyTorch's files have none: %s" % (name, known))
        shape = list(given[name]["shape"])
        made.append(random_input(torch, [rows, *shape] if settings["rows"] else shape, given[name]["dtype"], generator))
    unknown = [name for name in given if name not in names]
    if unknown:
        raise Fault("input '%s': expected one of %s" % (unknown[0], ", ".join(names)))
    return made


def flat(torch, value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [one for part in value.values() for one in flat(torch, part)]
    if isinstance(value, (list, tuple)):
        return [one for part in value for one in flat(torch, part)]
    raise Fault("expected outputs that are tensors, got %s" % type(value).__name__)


def described(torch, name, tensor):
    array = tensor.detach().contiguous().cpu().numpy()
    data = base64.b64encode(array.tobytes()).decode()
    return {"name": name, "dtype": type_of(tensor), "shape": list(array.shape), "data": data}


def export(torch, model, recordable, names, examples, target, settings):
    generator = torch.Generator().manual_seed(0)
    samples = []
    # PyTorch's own kernels: oneDNN's LSTM of Debian 13 computes other values.
    with torch.no_grad(), torch.backends.mkldnn.flags(enabled=False):
        for rows in (2, 3) if settings["rows"] else (1, 1):
            inputs = inputs_for(torch, names, examples, settings, rows, generator)
            samples.append((inputs, flat(torch, model(*inputs))))
        inputs, outputs = samples[0]
        count = len(outputs)
        output_names = ["output"] if count == 1 else ["output_%d" % i for i in range(count)]
        axes = {name: {0: "rows"} for name in [*names, *output_names]} if settings["rows"] else None
        if settings["rows"] and any(one.dim() == 0 or one.shape[0] != 2 for one in outputs):
            raise Fault("an output has no row for each row of the inputs")
        if not isinstance(recordable, torch.jit.ScriptModule):
            recordable = torch.jit.trace(recordable, tuple(inputs), strict=False)
        options = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
        torch.onnx.export(
            recordable,
            tuple(inputs),
            target,
            input_names=names,
            output_names=output_names,
            dynamic_axes=axes,
            opset_version=settings["opset"],
            **options,
        )
    written = [
        {
            "inputs": [described(torch, name, one) for name, one in zip(names, given)],
            "outputs": [described(torch, name, one) for name, one in zip(output_names, results)],
        }
        for given, results in samples
    ]
    with open(target + ".samples.json", "w") as file:
        json.dump(written, file)


def main(path, target):
    settings = json.load(sys.stdin)
    try:
        import torch
    except ImportError as error:
        raise Fault("no torch: %s" % error)
    export(torch, *load(torch, path), target, settings)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Fault as error:
        sys.exit(sys.stderr.write("error: %s\n" % error) and 3)
    except Exception as error:  # PyTorch's own words, in one line.
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        sys.stderr.write("error: PyTorch: %s\n" % (lines[0] if lines else type(error).__name__))
        sys.exit(3)
