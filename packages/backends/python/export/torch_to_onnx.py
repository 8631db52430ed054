"""Exports a model of PyTorch to ONNX: TorchScript (`torch.jit.save`), or a program of `torch.export` (`.pt2`).

    python torch_to_onnx.py model.pt model.onnx < settings.json

The settings are {"inputs": {name: {"shape": [...], "dtype": "FP32"}}, "rows": true, "opset": 17}; shapes have no rows
where `rows` is true. Beside the ONNX file it writes <model.onnx>.samples.json: inputs, and the outputs of PyTorch for
them. A fault is one line on stderr that begins with `error: `, and the exit code 3.
"""

import base64
import inspect
import json
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
    """The model, and the names of its inputs."""
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
        program = torch.export.load(path)
        return program.module(), list(program.graph_signature.user_inputs)
    model = torch.jit.load(path, map_location="cpu").eval()
    return model, [argument.name for argument in model.forward.schema.arguments[1:]]


def random_input(torch, shape, dtype, generator):
    kind = getattr(torch, TYPES[dtype])
    if dtype.startswith("FP"):
        return torch.randn(shape, generator=generator).to(kind)
    # Small numbers: rows of a table, or booleans.
    return torch.randint(0, 2, shape, generator=generator).to(kind)


def inputs_for(torch, names, settings, rows, generator):
    given = settings["inputs"]
    made = []
    for name in names:
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
    names = {value: key for key, value in TYPES.items()}
    if str(array.dtype) not in names:
        raise Fault("'%s': the type %s is not exported" % (name, array.dtype))
    data = base64.b64encode(array.tobytes()).decode()
    return {"name": name, "dtype": names[str(array.dtype)], "shape": list(array.shape), "data": data}


def export(torch, model, names, target, settings):
    generator = torch.Generator().manual_seed(0)
    samples = []
    with torch.no_grad():
        for rows in (2, 3) if settings["rows"] else (1, 1):
            inputs = inputs_for(torch, names, settings, rows, generator)
            samples.append((inputs, flat(torch, model(*inputs))))
        inputs, outputs = samples[0]
        count = len(outputs)
        output_names = ["output"] if count == 1 else ["output_%d" % i for i in range(count)]
        axes = {name: {0: "rows"} for name in [*names, *output_names]} if settings["rows"] else None
        if settings["rows"] and any(one.dim() == 0 or one.shape[0] != 2 for one in outputs):
            raise Fault("an output has no row for each row of the inputs")
        if not isinstance(model, torch.jit.ScriptModule):
            model = torch.jit.trace(model, tuple(inputs))
        options = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
        torch.onnx.export(
            model,
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
    model, names = load(torch, path)
    export(torch, model, names, target, settings)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Fault as error:
        sys.exit(sys.stderr.write("error: %s\n" % error) and 3)
    except Exception as error:  # PyTorch's own words, in one line.
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        sys.stderr.write("error: PyTorch: %s\n" % (lines[0] if lines else type(error).__name__))
        sys.exit(3)
