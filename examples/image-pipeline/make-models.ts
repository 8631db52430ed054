import { type OnnxNode, onnxModel } from "@tritonjs-examples/onnx-writer";

/** Colours that the models recognize, as red, green and blue from 0 to 1. */
export const COLOURS = {
  sky: [0.4, 0.7, 1],
  meadow: [0.2, 0.6, 0.2],
  beach: [0.9, 0.8, 0.5],
  night: [0, 0, 0.1],
};

/** Names of the classes, in the models' order. */
export const CLASSES = Object.keys(COLOURS);

const prototypes = Object.values(COLOURS);

/**
 * Scores of a colour x for each prototype p: `2 x.p - p.p`, which is largest for the nearest one. A 1 x 1 convolution
 * computes it for every pixel.
 */
const scores: OnnxNode = { op: "Conv", inputs: ["pixels", "weights", "bias"], outputs: ["scores"] };
const SHARPNESS = 20;
const weights = [
  {
    name: "weights",
    dims: [prototypes.length, 3, 1, 1],
    data: Float32Array.from(prototypes.flat(), (value) => 2 * SHARPNESS * value),
  },
  {
    name: "bias",
    dims: [prototypes.length],
    data: Float32Array.from(prototypes, (colour) => -SHARPNESS * colour.reduce((sum, v) => sum + v * v, 0)),
  },
];
const pixels = { name: "pixels", elemType: "FLOAT", dims: ["batch", 3, "height", "width"] } as const;

/** A classifier of the whole picture: `probabilities`, FP32 `[batch, classes]`. */
export function makeClassifier(): Uint8Array {
  return onnxModel({
    name: "classifier",
    opset: 13,
    inputs: [pixels],
    outputs: [{ name: "probabilities", elemType: "FLOAT", dims: ["batch", prototypes.length] }],
    initializers: weights,
    nodes: [
      scores,
      { op: "GlobalAveragePool", inputs: ["scores"], outputs: ["means"] },
      { op: "Flatten", inputs: ["means"], outputs: ["logits"], attributes: { axis: { int: 1 } } },
      { op: "Softmax", inputs: ["logits"], outputs: ["probabilities"], attributes: { axis: { int: 1 } } },
    ],
  });
}

/** A classifier of each pixel: `mask`, INT64 `[batch, height, width]`, class numbers. */
export function makeSegmenter(): Uint8Array {
  return onnxModel({
    name: "segmenter",
    opset: 13,
    inputs: [pixels],
    outputs: [{ name: "mask", elemType: "INT64", dims: ["batch", "height", "width"] }],
    initializers: weights,
    nodes: [
      scores,
      {
        op: "ArgMax",
        inputs: ["scores"],
        outputs: ["mask"],
        attributes: { axis: { int: 1 }, keepdims: { int: 0 } },
      },
    ],
  });
}
