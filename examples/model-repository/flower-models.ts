import { onnxModel } from "@tritonjs-examples/onnx-writer";

/** Means and ranges of the four measures of an iris, in centimetres. */
const MEANS = Float32Array.of(5.84, 3.06, 3.76, 1.2);
const SCALES = Float32Array.of(1 / 3.6, 1 / 2.4, 1 / 5.9, 1 / 2.4);

/** Weights of each measure (rows) for each kind of iris (columns). */
const WEIGHTS = Float32Array.of(-1, 0.5, 0.5, 2, -1, -1, -4, 0, 4, -4, -0.5, 4.5);

/** Normalizes the measures: `(measures - mean) * scale`, row by row. */
export function normalizeModel(): Uint8Array {
  return onnxModel({
    name: "normalize",
    opset: 17,
    inputs: [{ name: "measures", elemType: "FLOAT", dims: ["batch", 4] }],
    outputs: [{ name: "normal", elemType: "FLOAT", dims: ["batch", 4] }],
    nodes: [
      { op: "Sub", inputs: ["measures", "means"], outputs: ["centred"] },
      { op: "Mul", inputs: ["centred", "scales"], outputs: ["normal"] },
    ],
    initializers: [
      { name: "means", dims: [4], data: MEANS },
      { name: "scales", dims: [4], data: SCALES },
    ],
  });
}

/** A score for each kind of iris: `normal * weights`. */
export function classifyModel(): Uint8Array {
  return onnxModel({
    name: "classify",
    opset: 17,
    inputs: [{ name: "normal", elemType: "FLOAT", dims: ["batch", 4] }],
    outputs: [{ name: "scores", elemType: "FLOAT", dims: ["batch", 3] }],
    nodes: [{ op: "MatMul", inputs: ["normal", "weights"], outputs: ["scores"] }],
    initializers: [{ name: "weights", dims: [4, 3], data: WEIGHTS }],
  });
}
