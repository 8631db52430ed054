/*
 * Networks as large as those that recognise speech, with random weights, in the sizes of WeNet's recipe for AISHELL: a
 * conformer of 12 blocks, and a decoder of 6 layers. Their tensors are those of examples/speech-recognition.
 */

import { onnxModel } from "../../examples/onnx-writer/dist/onnx-writer.js";

const BINS = 80;
const WIDTH = 256;
const HIDDEN = 2048;
const HEADS = 4;
const BLOCKS = 12;
const KERNEL = 15;
const UNITS = 7029;
const BEAM = 10;
const LAYERS = 6;
const LONGEST = 5000;
/** Bins after two convolutions of size 3 and stride 2. */
const BANDS = 19;
/** Makes one unit of each frame likely, as in a trained network, and in four of five frames the blank. */
const SHARPNESS = 20;
const BLANK_BIAS = 4.7 * SHARPNESS;

/** The file of the encoder; the same with each call. */
export function randomConformer() {
  const graph = new Graph();
  let x = graph.op("Unsqueeze", ["speech", graph.integers(1)]);
  x = graph.op("Relu", [graph.conv2d(x, 1)]);
  x = graph.op("Relu", [graph.conv2d(x, WIDTH)]);
  x = graph.op("Transpose", [x], { perm: { ints: [0, 2, 1, 3] } });
  x = graph.linear(graph.op("Reshape", [x, graph.integers(0, 0, WIDTH * BANDS)]), WIDTH * BANDS, WIDTH);
  const { half, mask, places } = lengths(graph, x);
  for (let block = 0; block < BLOCKS; block++) {
    x = graph.op("Add", [x, graph.op("Mul", [feedForward(graph, graph.norm(x)), half])]);
    x = graph.op("Add", [x, attention(graph, graph.norm(x), mask, places)]);
    x = graph.op("Add", [x, convolution(graph, graph.norm(x))]);
    x = graph.op("Add", [x, graph.op("Mul", [feedForward(graph, graph.norm(x)), half])]);
    x = graph.norm(x);
  }
  graph.op("Identity", [x], {}, ["encoder_out"]);
  const bias = new Float32Array(UNITS);
  bias[0] = BLANK_BIAS;
  const scores = graph.op("Add", [
    graph.op("MatMul", [x, graph.weights([WIDTH, UNITS], SHARPNESS / Math.sqrt(WIDTH))]),
    graph.constant("FLOAT", [UNITS], bias),
  ]);
  graph.op("LogSoftmax", [scores], { axis: { int: 2 } }, ["ctc_log_probs"]);
  graph.op("TopK", ["ctc_log_probs", graph.integers(BEAM)], { axis: { int: 2 } }, [
    "beam_log_probs",
    "beam_log_probs_idx",
  ]);
  return onnxModel({
    name: "conformer",
    opset: 17,
    inputs: [
      { name: "speech", elemType: "FLOAT", dims: ["rows", "frames", BINS] },
      { name: "speech_lengths", elemType: "INT32", dims: ["rows"] },
    ],
    outputs: [
      { name: "encoder_out", elemType: "FLOAT", dims: ["rows", "steps", WIDTH] },
      { name: "encoder_out_lens", elemType: "INT32", dims: ["rows"] },
      { name: "ctc_log_probs", elemType: "FLOAT", dims: ["rows", "steps", UNITS] },
      { name: "beam_log_probs", elemType: "FLOAT", dims: ["rows", "steps", BEAM] },
      { name: "beam_log_probs_idx", elemType: "INT64", dims: ["rows", "steps", BEAM] },
    ],
    nodes: graph.nodes,
    initializers: graph.initializers,
  });
}

/** The file of the decoder, which scores the texts of the search again. */
export function randomDecoder() {
  const graph = new Graph();
  const minusOne = graph.integers(-1);
  const [second, third] = [graph.integers(1), graph.integers(2)];
  const before = graph.op("Slice", ["hyps_pad_sos_eos", graph.integers(0), minusOne, third]);
  const after = graph.op("Slice", ["hyps_pad_sos_eos", second, graph.integers(2 ** 31), third]);
  const sizeOf = (x, axis) =>
    graph.op("Squeeze", [graph.op("Gather", [graph.op("Shape", [x]), graph.integers(axis)])]);
  const steps = graph.range(sizeOf(before, 2));
  const times = graph.range(sizeOf("encoder_out", 1));
  const [zero, far] = [graph.number(0), graph.number(-1e4)];
  const column = graph.op("Unsqueeze", [steps, second]);
  const past = graph.op("Where", [graph.op("Less", [column, steps]), far, zero]);
  const own = (name, ...axes) =>
    graph.op("Cast", [graph.op("Unsqueeze", [name, graph.integers(...axes)])], { to: { int: 7 } });
  const heard = graph.op("Where", [
    graph.op("Less", [times, own("encoder_out_lens", 1, 2, 3, 4)]),
    zero,
    far,
  ]);
  const sizes = graph.integers(0, 0, -1, HEADS, WIDTH / HEADS);
  // Texts are [rows, beam, units, width], and the frames of a row [rows, 1, frames, width].
  const frames = graph.op("Unsqueeze", ["encoder_out", second]);
  const head = (y, order) =>
    graph.op("Transpose", [graph.op("Reshape", [graph.linear(y, WIDTH, WIDTH), sizes])], {
      perm: { ints: order },
    });
  const mixed = (y, source, mask) => {
    const scale = graph.number(1 / Math.sqrt(WIDTH / HEADS));
    const product = graph.op("MatMul", [head(y, [0, 1, 3, 2, 4]), head(source, [0, 1, 3, 4, 2])]);
    const scores = graph.op("Add", [graph.op("Mul", [product, scale]), mask]);
    const shares = graph.op("Softmax", [scores], { axis: { int: -1 } });
    const sum = graph.op("Transpose", [graph.op("MatMul", [shares, head(source, [0, 1, 3, 2, 4])])], {
      perm: { ints: [0, 1, 3, 2, 4] },
    });
    return graph.linear(graph.op("Reshape", [sum, graph.integers(0, 0, -1, WIDTH)]), WIDTH, WIDTH);
  };
  let x = graph.op("Gather", [graph.weights([UNITS, WIDTH], 1), before]);
  for (let layer = 0; layer < LAYERS; layer++) {
    const y = graph.norm(x);
    x = graph.op("Add", [x, mixed(y, y, past)]);
    x = graph.op("Add", [x, mixed(graph.norm(x), frames, heard)]);
    x = graph.op("Add", [x, feedForward(graph, graph.norm(x))]);
  }
  const logProbs = graph.op("LogSoftmax", [graph.linear(graph.norm(x), WIDTH, UNITS)], { axis: { int: 3 } });
  const scores = graph.op("GatherElements", [logProbs, graph.op("Unsqueeze", [after, graph.integers(3)])], {
    axis: { int: 3 },
  });
  const counts = graph.op("Cast", [graph.op("Less", [steps, own("hyps_lens_sos", 2)])], { to: { int: 1 } });
  const counted = graph.op("Mul", [graph.op("Squeeze", [scores, graph.integers(3)]), counts]);
  const total = graph.op("ReduceSum", [counted, third], { keepdims: { int: 0 } });
  const best = { axis: { int: 1 }, keepdims: { int: 0 } };
  graph.op("ArgMax", [graph.op("Add", [total, "ctc_score"])], best, ["best_index"]);
  return onnxModel({
    name: "decoder",
    opset: 17,
    inputs: [
      { name: "encoder_out", elemType: "FLOAT", dims: ["rows", "frames", WIDTH] },
      { name: "encoder_out_lens", elemType: "INT32", dims: ["rows"] },
      { name: "hyps_pad_sos_eos", elemType: "INT64", dims: ["rows", BEAM, "units"] },
      { name: "hyps_lens_sos", elemType: "INT32", dims: ["rows", BEAM] },
      { name: "ctc_score", elemType: "FLOAT", dims: ["rows", BEAM] },
    ],
    outputs: [{ name: "best_index", elemType: "INT64", dims: ["rows"] }],
    nodes: graph.nodes,
    initializers: graph.initializers,
  });
}

/** Steps of each row, a mask that hides the steps after them from attention, and embeddings of relative places. */
function lengths(graph, x) {
  const [one, two] = [1, 2].map((value) => graph.constant("INT32", [1], Int32Array.of(value)));
  let count = "speech_lengths";
  for (let i = 0; i < 2; i++) count = graph.op("Div", [graph.op("Sub", [count, one]), two]);
  graph.op("Identity", [count], {}, ["encoder_out_lens"]);
  const steps = graph.op("Squeeze", [graph.op("Gather", [graph.op("Shape", [x]), graph.integers(1)])]);
  const wide = graph.op("Cast", [graph.op("Unsqueeze", [count, graph.integers(1, 2, 3)])], {
    to: { int: 7 },
  });
  const times = graph.range(steps);
  return {
    half: graph.number(0.5),
    mask: graph.op("Where", [graph.op("Less", [times, wide]), graph.number(0), graph.number(-1e4)]),
    places: graph.op("Unsqueeze", [
      graph.op("Gather", [graph.weights([LONGEST, WIDTH], 1), times]),
      graph.integers(0),
    ]),
  };
}

function feedForward(graph, x) {
  return graph.linear(graph.silu(graph.linear(x, WIDTH, HIDDEN)), HIDDEN, WIDTH);
}

function attention(graph, x, mask, places) {
  const head = (y, order) => {
    const split = graph.op("Reshape", [
      graph.linear(y, WIDTH, WIDTH),
      graph.integers(0, 0, HEADS, WIDTH / HEADS),
    ]);
    return graph.op("Transpose", [split], { perm: { ints: order } });
  };
  const query = head(x, [0, 2, 1, 3]);
  const scores = graph.op("Add", [
    graph.op("MatMul", [query, head(x, [0, 2, 3, 1])]),
    graph.op("MatMul", [query, head(places, [0, 2, 3, 1])]),
  ]);
  const scaled = graph.op("Mul", [scores, graph.number(1 / Math.sqrt(WIDTH / HEADS))]);
  const shares = graph.op("Softmax", [graph.op("Add", [scaled, mask])], { axis: { int: -1 } });
  const mixed = graph.op("Transpose", [graph.op("MatMul", [shares, head(x, [0, 2, 1, 3])])], {
    perm: { ints: [0, 2, 1, 3] },
  });
  return graph.linear(graph.op("Reshape", [mixed, graph.integers(0, 0, WIDTH)]), WIDTH, WIDTH);
}

function convolution(graph, x) {
  const gates = graph.op("Split", [graph.linear(x, WIDTH, 2 * WIDTH)], { axis: { int: 2 } }, [
    graph.name(),
    graph.name(),
  ]);
  const gated = graph.op("Mul", [gates[0], graph.op("Sigmoid", [gates[1]])]);
  const turned = (y) => graph.op("Transpose", [y], { perm: { ints: [0, 2, 1] } });
  const weights = graph.weights([WIDTH, 1, KERNEL], 1 / Math.sqrt(KERNEL));
  const pad = (KERNEL - 1) / 2;
  const heard = graph.op("Conv", [turned(gated), weights], {
    group: { int: WIDTH },
    pads: { ints: [pad, pad] },
  });
  return graph.linear(graph.silu(graph.norm(turned(heard))), WIDTH, WIDTH);
}

class Graph {
  nodes = [];
  initializers = [];
  #names = 0;
  #random = 0x2545f491;

  name() {
    return `t${this.#names++}`;
  }

  op(op, inputs, attributes = {}, outputs = [this.name()]) {
    this.nodes.push({ op, inputs, outputs, attributes });
    return outputs.length === 1 ? outputs[0] : outputs;
  }

  constant(elemType, dims, data) {
    const name = this.name();
    this.initializers.push({ name, elemType, dims, data });
    return name;
  }

  number(value) {
    return this.constant("FLOAT", [], Float32Array.of(value));
  }

  /** The numbers from 0 to a count. */
  range(count) {
    const [from, step] = [0n, 1n].map((value) => this.constant("INT64", [], BigInt64Array.of(value)));
    return this.op("Range", [from, count, step]);
  }

  integers(...values) {
    return this.constant("INT64", [values.length], BigInt64Array.from(values, BigInt));
  }

  /** Random weights with a mean of 0. */
  weights(dims, deviation) {
    const data = new Float32Array(dims.reduce((product, size) => product * size, 1));
    // Uniform numbers from -0.5 to 0.5 deviate by the root of 1/12.
    const scale = (deviation * Math.sqrt(12)) / 2 ** 32;
    let x = this.#random;
    for (let i = 0; i < data.length; i++) {
      x ^= x << 13;
      x ^= x >>> 17;
      x ^= x << 5;
      data[i] = x * scale;
    }
    this.#random = x;
    return this.constant("FLOAT", dims, data);
  }

  linear(x, from, to) {
    const product = this.op("MatMul", [x, this.weights([from, to], 1 / Math.sqrt(from))]);
    return this.op("Add", [product, this.constant("FLOAT", [to], new Float32Array(to))]);
  }

  conv2d(x, from) {
    const weights = this.weights([WIDTH, from, 3, 3], 1 / Math.sqrt(9 * from));
    return this.op("Conv", [x, weights], { strides: { ints: [2, 2] } });
  }

  norm(x) {
    const scale = this.constant("FLOAT", [WIDTH], new Float32Array(WIDTH).fill(1));
    const shift = this.constant("FLOAT", [WIDTH], new Float32Array(WIDTH));
    return this.op("LayerNormalization", [x, scale, shift], { axis: { int: -1 } });
  }

  silu(x) {
    return this.op("Mul", [x, this.op("Sigmoid", [x])]);
  }
}
