"""Writes the trained networks as ONNX models, and the vocabulary.

    python3 export.py FOLDER

The offline encoder and the streaming one have the same weights. Weights are stored as 8-bit integers with a scale for
each output; ONNX Runtime turns them into FP32 when it loads a model, so all computing is in FP32. The vocabulary has
7,029 units, as the tutorial's configuration says: those of the networks, and units that are never heard.
"""

import argparse
import json
import math
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from network import BINS, BLOCKS, DECODER, FLUSH, HEADS, KERNEL, LAYERS, OUT, SILENCE, WIDTH, Decoder, Encoder

VOCABULARY, BEAM = 7029, 10
#: Weight of the score of CTC beside that of the decoder.
CTC_WEIGHT = 0.5
#: Logarithm of the probability of units that are never heard.
NEVER = -1e4
MODELS = Path(__file__).parent.parent


class Graph:
    def __init__(self):
        self.nodes, self.weights, self.known, self.count = [], [], {}, 0

    def op(self, kind, *inputs, outputs=1, name=None, **attributes):
        made = [f"{kind.lower()}_{self.count + i}" if name is None else name for i in range(outputs)]
        self.count += outputs
        self.nodes.append(helper.make_node(kind, list(inputs), made, **attributes))
        return made[0] if outputs == 1 else made

    def constant(self, values, dtype=np.float32):
        array = np.ascontiguousarray(np.asarray(values, dtype=dtype))
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.known:
            self.known[key] = f"constant_{len(self.known)}"
            self.weights.append(numpy_helper.from_array(array, self.known[key]))
        return self.known[key]

    def integers(self, *values):
        return self.constant(values, np.int64)

    def weight(self, tensor, axis):
        """A matrix in 8 bits, with a scale for each index of the axis of outputs."""
        array = tensor.detach().numpy()
        if array.size < 4096:
            return self.constant(array)
        others = tuple(i for i in range(array.ndim) if i != axis)
        scale = np.maximum(np.abs(array).max(axis=others, keepdims=True), 1e-8) / 127
        whole = self.constant(np.round(array / scale), np.int8)
        return self.op("Mul", self.op("Cast", whole, to=TensorProto.FLOAT), self.constant(scale))

    def linear(self, x, layer):
        product = self.op("MatMul", x, self.weight(layer.weight.T, 1))
        return self.op("Add", product, self.constant(layer.bias.detach()))

    def conv(self, x, layer, left=0):
        """A convolution over the second axis of [rows, frames, channels]."""
        y = self.op("Transpose", x, perm=[0, 2, 1])
        settings = {"strides": list(layer.stride), "group": layer.groups, "pads": [left, 0]}
        y = self.op("Conv", y, self.weight(layer.weight, 0), self.constant(layer.bias.detach()), **settings)
        return self.op("Transpose", y, perm=[0, 2, 1])

    def norm(self, x, layer):
        scale, shift = self.constant(layer.weight.detach()), self.constant(layer.bias.detach())
        return self.op("LayerNormalization", x, scale, shift, axis=-1, epsilon=layer.eps)

    def silu(self, x):
        return self.op("Mul", x, self.op("Sigmoid", x))

    def save(self, path, inputs, outputs):
        types = {"f": TensorProto.FLOAT, "i": TensorProto.INT32, "l": TensorProto.INT64}
        info = lambda rows: [helper.make_tensor_value_info(name, types[kind], shape) for name, kind, shape in rows]
        graph = helper.make_graph(self.nodes, path.stem, info(inputs), info(outputs), self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(model.SerializeToString())
        print(path, path.stat().st_size)


def encoder(net, path, streaming):
    """The encoder of whole signals, or of a stream whose states hold what its convolutions look back on."""
    g = Graph()
    lengths = "speech_lengths"
    states = []

    def looking_back(x, layer, past, rate):
        """A convolution of the frames of earlier requests and of these; keeps the last ones of those that count."""
        if not streaming:
            return g.conv(x, layer, layer.kernel_size[0] - layer.stride[0])
        count = layer.kernel_size[0] - layer.stride[0]
        whole = g.op("Concat", past, x, axis=1)
        first = g.op("Div", lengths, g.constant([rate], np.int32))
        first = g.op("Unsqueeze", g.op("Cast", first, to=TensorProto.INT64), g.integers(1))
        places = g.op("Unsqueeze", g.op("Add", first, g.integers(*range(count))), g.integers(2))
        states.append(g.op("GatherND", whole, places, batch_dims=1))
        return g.conv(whole, layer)

    x = "speech"
    if not streaming:
        frames = g.op("Gather", g.op("Shape", x), g.integers(1))
        total = g.op("Add", frames, g.integers(FLUSH))
        pads = g.integers(0, 0, 0, 0, FLUSH, 0)
        padded = g.op("Pad", x, pads, g.constant(SILENCE))
        squeezed = g.op("Squeeze", total)
        steps = g.op("Range", g.constant(0, np.int64), squeezed, g.constant(1, np.int64))
        wide = g.op("Cast", g.op("Unsqueeze", lengths, g.integers(1)), to=TensorProto.INT64)
        inside = g.op("Less", g.op("Unsqueeze", steps, g.integers(0)), wide)
        x = g.op("Where", g.op("Unsqueeze", inside, g.integers(2)), padded, g.constant(SILENCE))
    x = g.op("Mul", g.op("Sub", x, g.constant(net.mean)), g.constant(net.scale))
    x = g.op("Clip", x, g.constant(-4.0), g.constant(4.0))
    x = g.silu(looking_back(x, net.first, "first_past", 1))
    x = g.silu(looking_back(x, net.second, "second_past", 2))
    pasts = g.op("Split", "blocks_past", outputs=BLOCKS, axis=1) if streaming else [None] * BLOCKS
    for block, past in zip(net.blocks, pasts):
        own = g.op("Squeeze", past, g.integers(1)) if streaming else None
        a, b = g.op("Split", g.linear(g.norm(x, block.norm1), block.gate), outputs=2, axis=2)
        y = looking_back(g.op("Mul", a, g.op("Sigmoid", b)), block.depth, own, 4)
        y = g.linear(g.silu(g.norm(y, block.norm2)), block.point)
        x = g.op("Add", x, y)
        y = g.linear(g.silu(g.linear(g.norm(x, block.norm3), block.wide)), block.narrow)
        x = g.op("Add", x, y)
    encoded = g.linear(g.norm(x, net.norm), net.out)
    logits = g.linear(g.silu(encoded), net.ctc)
    # The last unit begins and ends texts; nobody says it.
    heard = net.ctc.out_features - 1
    logits = g.op("Slice", logits, g.integers(0), g.integers(heard), g.integers(2))
    log_probs = g.op("LogSoftmax", logits, axis=2)
    best, ids = g.op("TopK", log_probs, g.integers(BEAM), outputs=2, axis=2)
    g.op("Identity", best, name="beam_log_probs")
    g.op("Identity", ids, name="beam_log_probs_idx")
    more = lengths if streaming else g.op("Add", lengths, g.constant([FLUSH], np.int32))
    g.op("Div", more, g.constant([4], np.int32), name="encoder_out_lens")
    inputs = [("speech", "f", ["rows", "frames", BINS]), ("speech_lengths", "i", ["rows"])]
    outputs = [
        ("encoder_out_lens", "i", ["rows"]),
        ("beam_log_probs", "f", ["rows", "steps", BEAM]),
        ("beam_log_probs_idx", "l", ["rows", "steps", BEAM]),
    ]
    if streaming:
        first, second, *blocks = states
        g.op("Identity", first, name="first_present")
        g.op("Identity", second, name="second_present")
        g.op("Concat", *(g.op("Unsqueeze", one, g.integers(1)) for one in blocks), axis=1, name="blocks_present")
        shapes = {"first": [2, BINS], "second": [2, WIDTH], "blocks": [BLOCKS, KERNEL - 1, WIDTH]}
        inputs += [(f"{name}_past", "f", ["rows", *shape]) for name, shape in shapes.items()]
        outputs += [(f"{name}_present", "f", ["rows", *shape]) for name, shape in shapes.items()]
    else:
        g.op("Identity", encoded, name="encoder_out")
        g.op("Pad", log_probs, g.integers(0, 0, 0, 0, 0, VOCABULARY - heard), g.constant(NEVER), name="ctc_log_probs")
        outputs = [
            ("encoder_out", "f", ["rows", "steps", OUT]),
            outputs[0],
            ("ctc_log_probs", "f", ["rows", "steps", VOCABULARY]),
            *outputs[1:],
        ]
    g.save(path, inputs, outputs)


def decoder(net, path):
    """Scores hypotheses: the sum of the logarithms of their units' probabilities, and of CTC with its weight."""
    g = Graph()
    size = DECODER // HEADS
    last = net.out.out_features - 1
    own_id = lambda ids: g.op("Min", ids, g.constant(last, np.int64))
    before = own_id(g.op("Slice", "hyps_pad_sos_eos", g.integers(0), g.integers(-1), g.integers(2)))
    after = own_id(g.op("Slice", "hyps_pad_sos_eos", g.integers(1), g.integers(2**31), g.integers(2)))
    count = g.op("Squeeze", g.op("Slice", g.op("Shape", before), g.integers(2), g.integers(3)))
    steps = g.op("Range", g.constant(0, np.int64), count, g.constant(1, np.int64))
    far = g.constant(-1e4)

    def split(x, shape, order):
        return g.op("Transpose", g.op("Reshape", x, g.integers(*shape)), perm=order)

    def mixed(q, k, v, mask):
        across = list(range({"own": 5, "cross": 4}[mask[0]]))
        turned = g.op("Transpose", k, perm=[*across[:-2], across[-1], across[-2]])
        scores = g.op("Mul", g.op("MatMul", q, turned), g.constant(1 / math.sqrt(size)))
        return g.op("MatMul", g.op("Softmax", g.op("Add", scores, mask[1]), axis=-1), v)

    column, line = g.op("Unsqueeze", steps, g.integers(1)), g.op("Unsqueeze", steps, g.integers(0))
    past = g.op("Where", g.op("Less", column, line), far, g.constant(0.0))
    frames = g.op("Squeeze", g.op("Slice", g.op("Shape", "encoder_out"), g.integers(1), g.integers(2)))
    times = g.op("Range", g.constant(0, np.int64), frames, g.constant(1, np.int64))
    lengths = g.op("Cast", g.op("Unsqueeze", "encoder_out_lens", g.integers(1, 2, 3)), to=TensorProto.INT64)
    heard = g.op("Where", g.op("Less", times, lengths), g.constant(0.0), far)
    x = g.op("Gather", g.weight(net.embedding.weight * math.sqrt(DECODER), 0), before)
    most = net.places.shape[0] - 1
    places = g.op("Gather", g.weight(net.places, 0), g.op("Min", steps, g.constant(most, np.int64)))
    x = g.op("Add", x, places)
    for layer in net.layers:
        y = g.norm(x, layer.norms[0])
        q, k, v = (
            split(g.linear(y, one), (0, 0, -1, HEADS, size), [0, 1, 3, 2, 4])
            for one in (layer.own.q, layer.own.k, layer.own.v)
        )
        y = g.op("Transpose", mixed(q, k, v, ("own", past)), perm=[0, 1, 3, 2, 4])
        x = g.op("Add", x, g.linear(g.op("Reshape", y, g.integers(0, 0, -1, DECODER)), layer.own.o))
        # All hypotheses of a row attend to its frames together.
        q = split(g.linear(g.norm(x, layer.norms[1]), layer.cross.q), (0, -1, HEADS, size), [0, 2, 1, 3])
        k, v = (
            split(g.linear("encoder_out", one), (0, -1, HEADS, size), [0, 2, 1, 3])
            for one in (layer.cross.k, layer.cross.v)
        )
        y = g.op("Transpose", mixed(q, k, v, ("cross", heard)), perm=[0, 2, 1, 3])
        x = g.op("Add", x, g.linear(g.op("Reshape", y, g.integers(0, BEAM, -1, DECODER)), layer.cross.o))
        y = g.linear(g.silu(g.linear(g.norm(x, layer.norms[2]), layer.wide)), layer.narrow)
        x = g.op("Add", x, y)
    log_probs = g.op("LogSoftmax", g.linear(g.norm(x, net.norm), net.out), axis=3)
    scores = g.op("GatherElements", log_probs, g.op("Unsqueeze", after, g.integers(3)), axis=3)
    said = g.op("Cast", g.op("Unsqueeze", "hyps_lens_sos", g.integers(2)), to=TensorProto.INT64)
    counted = g.op("Cast", g.op("Less", steps, said), to=TensorProto.FLOAT)
    total = g.op("ReduceSum", g.op("Mul", g.op("Squeeze", scores, g.integers(3)), counted), g.integers(2), keepdims=0)
    total = g.op("Add", total, g.op("Mul", "ctc_score", g.constant(CTC_WEIGHT)))
    g.op("ArgMax", total, axis=1, keepdims=0, name="best_index")
    inputs = [
        ("encoder_out", "f", ["rows", "frames", OUT]),
        ("encoder_out_lens", "i", ["rows"]),
        ("hyps_pad_sos_eos", "l", ["rows", BEAM, "units"]),
        ("hyps_lens_sos", "i", ["rows", BEAM]),
        ("ctc_score", "f", ["rows", BEAM]),
    ]
    g.save(path, inputs, [("best_index", "l", ["rows"])])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    units = json.loads((folder / "units.json").read_text())["units"]
    names = ["<blank>", "<unk>", *units]
    names += [f"<never{i}>" for i in range(len(names), VOCABULARY - 1)] + ["<sos/eos>"]
    lines = "".join(f"{name} {i}\n" for i, name in enumerate(names))
    state = torch.load(folder / "networks.pt")
    ear, pen = Encoder(len(units) + 3), Decoder(len(units) + 3)
    ear.load_state_dict(state["encoder"])
    pen.load_state_dict(state["decoder"])
    (MODELS / "models/scoring/1/units.txt").write_text(lines, encoding="utf-8")
    encoder(ear, MODELS / "models/encoder/1/encoder.onnx", False)
    decoder(pen, MODELS / "models/decoder/1/decoder.onnx")
    encoder(ear, MODELS / "streaming/stream_encoder/1/model.onnx", True)


if __name__ == "__main__":
    main()
