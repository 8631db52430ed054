import { onnxModel } from "../../examples/onnx-writer/dist/onnx-writer.js";

/* Two small networks with random weights: what they compute means nothing, how long it takes does. */

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

const conv = (input, layer, output, stride) => ({
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

const mlp = (name, width) =>
  classifier(
    name,
    [512],
    [gemm("x", 1, "a"), relu("a", "b"), gemm("b", 2, "c"), relu("c", "d"), gemm("d", 3, "y")],
    [
      ...[weights("w1", 512, width), weights("b1", width)],
      ...[weights("w2", width, width), weights("b2", width)],
      ...[weights("w3", width, 10), weights("b3", 10)],
    ],
  );

/** A model by name: `mlp` of three layers, `heavy` with wider ones, `conv` for images of 32 x 32. */
export const onnxModels = {
  mlp: () => mlp("mlp", 2048),
  heavy: () => mlp("heavy", 4096),
  conv: () =>
    classifier(
      "conv",
      [3, 32, 32],
      [
        conv("x", 1, "a", 1),
        relu("a", "b"),
        conv("b", 2, "c", 2),
        relu("c", "d"),
        { op: "GlobalAveragePool", inputs: ["d"], outputs: ["e"] },
        { op: "Flatten", inputs: ["e"], outputs: ["f"] },
        gemm("f", 3, "y"),
      ],
      [
        ...[weights("w1", 32, 3, 3, 3), weights("b1", 32)],
        ...[weights("w2", 64, 32, 3, 3), weights("b2", 64)],
        ...[weights("w3", 64, 10), weights("b3", 10)],
      ],
    ),
};
