import { onnxModel } from "../../examples/onnx-writer/dist/onnx-writer.js";

/* Small networks with random weights. Only their run time matters, not their results. */

function randomNumbers(seed) {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648 - 0.5;
  };
}

const random = randomNumbers(7);

function weights(name, ...dims) {
  const size = dims.reduce((product, dim) => product * dim, 1);
  return { name, dims, data: Float32Array.from({ length: size }, () => random() / 16) };
}

const value = (name, ...dims) => ({ name, elemType: "FLOAT", dims: ["batch", ...dims] });

const gemm = (input, layer, output) => ({
  op: "Gemm",
  inputs: [input, `w${layer}`, `b${layer}`],
  outputs: [output],
});

const relu = (input, output) => ({ op: "Relu", inputs: [input], outputs: [output] });

const convolution = (input, layer, output, stride) => ({
  op: "Conv",
  inputs: [input, `w${layer}`, `b${layer}`],
  outputs: [output],
  attributes: {
    kernel_shape: { ints: [3, 3] },
    pads: { ints: [1, 1, 1, 1] },
    strides: { ints: [stride, stride] },
  },
});

const classifier = (name, shape, nodes, initializers) => ({
  shape,
  bytes: onnxModel({
    name,
    opset: 13,
    inputs: [value("x", ...shape)],
    outputs: [value("y", 10)],
    nodes,
    initializers,
  }),
});

/** Consecutive layers of one width, each with width squared weights. */
function mlp(name, width, depth) {
  const layers = Array.from({ length: depth }, (_, i) => i + 1);
  return classifier(
    name,
    [512],
    [
      ...layers.flatMap((i) => [gemm(i === 1 ? "x" : `h${i - 1}`, i, `g${i}`), relu(`g${i}`, `h${i}`)]),
      gemm(`h${depth}`, depth + 1, "y"),
    ],
    [
      ...layers.flatMap((i) => [weights(`w${i}`, i === 1 ? 512 : width, width), weights(`b${i}`, width)]),
      ...[weights(`w${depth + 1}`, width, 10), weights(`b${depth + 1}`, 10)],
    ],
  );
}

/**
 * Convolutions over images of 32 x 32.
 *
 * @param layers `[channels, stride]` of each
 * @param head makes the row "row" of `width` numbers from "h", the output of the last layer
 */
function conv(name, layers, head) {
  const { nodes, initializers, width } = head;
  const last = layers.length;
  return classifier(
    name,
    [3, 32, 32],
    [
      ...layers.flatMap(([, stride], i) => [
        convolution(i === 0 ? "x" : `h${i}`, i + 1, `c${i + 1}`, stride),
        relu(`c${i + 1}`, i + 1 === last ? "h" : `h${i + 1}`),
      ]),
      ...nodes,
      gemm("row", "y", "y"),
    ],
    [
      ...layers.flatMap(([channels], i) => [
        weights(`w${i + 1}`, channels, i === 0 ? 3 : layers[i - 1][0], 3, 3),
        weights(`b${i + 1}`, channels),
      ]),
      ...initializers,
      ...[weights("wy", width, 10), weights("by", 10)],
    ],
  );
}

/** The average of each channel. */
const average = (channels) => ({
  nodes: [
    { op: "GlobalAveragePool", inputs: ["h"], outputs: ["average"] },
    { op: "Flatten", inputs: ["average"], outputs: ["row"] },
  ],
  initializers: [],
  width: channels,
});

/** A dense layer over all values. */
const dense = (elements, width) => ({
  nodes: [
    { op: "Flatten", inputs: ["h"], outputs: ["flat"] },
    gemm("flat", "d", "dense"),
    relu("dense", "row"),
  ],
  initializers: [weights("wd", elements, width), weights("bd", width)],
  width,
});

/**
 * A model by name. In `mlp` and `conv`, which has a dense layer, a row costs less in a batch: its weights are read once
 * for all rows. `convolutions` takes the same time for each row in any batch, and so does `heavy`, which takes a long
 * time.
 */
/** A layer of 1,024 units from `x` to `y`, of which ensembles make a chain. */
function layer() {
  const width = 1024;
  return {
    shape: [width],
    bytes: onnxModel({
      name: "layer",
      opset: 13,
      inputs: [value("x", width)],
      outputs: [value("y", width)],
      nodes: [gemm("x", 1, "h"), relu("h", "y")],
      initializers: [weights("w1", width, width), weights("b1", width)],
    }),
  };
}

export const onnxModels = {
  layer,
  tiny: () => classifier("tiny", [16], [gemm("x", 1, "y")], [weights("w1", 16, 10), weights("b1", 10)]),
  mlp: () => mlp("mlp", 2048, 4),
  smallMlp: () => mlp("mlp", 1024, 2),
  conv: () =>
    conv(
      "conv",
      [
        [32, 2],
        [64, 2],
      ],
      dense(64 * 8 * 8, 4096),
    ),
  convolutions: () =>
    conv(
      "convolutions",
      [
        [64, 1],
        [64, 2],
      ],
      average(64),
    ),
  deepMlp: () => mlp("deepMlp", 2048, 12),
  denseConv: () =>
    conv(
      "denseConv",
      [
        [64, 2],
        [128, 2],
      ],
      dense(128 * 8 * 8, 4096),
    ),
  deepConv: () =>
    conv("deepConv", [[64, 1], [128, 2], ...Array.from({ length: 7 }, () => [128, 1])], average(128)),
  heavy: () =>
    conv(
      "heavy",
      [
        [64, 1],
        [128, 2],
        [128, 1],
        [128, 1],
      ],
      average(128),
    ),
};

/** A dense layer whose weights take 200 MB. They are all alike, because random ones take seconds to make. */
export function largeModel() {
  const width = 7168;
  return classifier(
    "large",
    [width],
    [gemm("x", 1, "h"), gemm("h", 2, "y")],
    [
      { name: "w1", dims: [width, width], data: new Float32Array(width * width).fill(1 / width) },
      { name: "b1", dims: [width], data: new Float32Array(width) },
      weights("w2", width, 10),
      weights("b2", 10),
    ],
  );
}
