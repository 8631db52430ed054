/*
 * Generates the model of `tritonjs init` and writes it into src/commands/sample-model.ts; with --print to standard output
 * instead. The model scores four features for three classes: softmax(features x weights).
 */
import { writeFileSync } from "node:fs";
import { onnxModel } from "../../../examples/onnx-writer/dist/onnx-writer.js";

const bytes = onnxModel({
  name: "classifier",
  opset: 17,
  inputs: [{ name: "features", elemType: "FLOAT", dims: ["batch", 4] }],
  outputs: [{ name: "probabilities", elemType: "FLOAT", dims: ["batch", 3] }],
  nodes: [
    { op: "MatMul", inputs: ["features", "weights"], outputs: ["scores"] },
    { op: "Softmax", inputs: ["scores"], outputs: ["probabilities"], attributes: { axis: { int: 1 } } },
  ],
  initializers: [
    {
      name: "weights",
      dims: [4, 3],
      data: Float32Array.of(0.5, 0.25, -0.5, 1, 0.25, -0.25, -1, 0.5, 1, -1.5, -0.25, 1.5),
    },
  ],
});

const lines = Buffer.from(bytes)
  .toString("base64")
  .match(/.{1,100}/g);
const text = `// Written by scripts/generate-sample.mjs: do not edit.

/** An ONNX model of a few bytes: four features in, probabilities of three classes out, any number of rows. */
export function sampleModel(): Uint8Array {
  return Buffer.from(BASE64.join(""), "base64");
}

const BASE64 = [
${lines.map((line) => `  "${line}",`).join("\n")}
];
`;
if (process.argv.includes("--print")) process.stdout.write(text);
else writeFileSync(new URL("../src/commands/sample-model.js", import.meta.url), text);
