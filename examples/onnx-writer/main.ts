import { writeFile } from "node:fs/promises";
import { onnxModel } from "./onnx-writer.js";

/*
 * Writes an ONNX file with one layer: y = x W + b.
 *
 *   npm start
 */

const bytes = onnxModel({
  name: "linear",
  opset: 17,
  inputs: [{ name: "x", elemType: "FLOAT", dims: ["batch", 2] }],
  outputs: [{ name: "y", elemType: "FLOAT", dims: ["batch", 1] }],
  initializers: [
    { name: "w", dims: [2, 1], data: Float32Array.of(1, 2) },
    { name: "b", dims: [1], data: Float32Array.of(0.5) },
  ],
  nodes: [{ op: "Gemm", inputs: ["x", "w", "b"], outputs: ["y"] }],
});
await writeFile(new URL("linear.onnx", import.meta.url), bytes);
console.log(`dist/linear.onnx: ${bytes.length} bytes`);
