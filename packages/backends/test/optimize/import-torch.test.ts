import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { onnxModel } from "../../../../examples/onnx-writer/onnx-writer.js";
import { importModel } from "../../src/optimize/import-model.js";
import { ModelRunner } from "../../src/optimize/model-runner.js";

const folder = mkdtempSync(join(tmpdir(), "torch-"));
afterAll(() => rmSync(folder, { recursive: true }));

const file = (name: string, content: string | Uint8Array = "PK") => {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
};

/** A program in the place of Python, which gets the arguments and the settings. */
function standIn(name: string, code: string): string {
  const text = `#!${process.execPath}
const { readFileSync, writeFileSync } = require("node:fs");
const [, , script, model, target] = process.argv;
const settings = JSON.parse(readFileSync(0, "utf8"));
const fail = (text) => { process.stderr.write("Warning: noise\\n" + text + "\\n"); process.exit(3); };
${code}
`;
  const path = file(name, text);
  chmodSync(path, 0o755);
  return path;
}

const doubling = (rows: number | string) =>
  onnxModel({
    name: "doubling",
    opset: 16,
    inputs: [{ name: "x", elemType: "FLOAT", dims: [rows, 2] }],
    outputs: [{ name: "output", elemType: "FLOAT", dims: [rows, 2] }],
    nodes: [{ op: "Add", inputs: ["x", "x"], outputs: ["output"] }],
  });

/** Code that writes a graph and a run of it, whose outputs are the inputs times a factor. */
const writing = (graph: Uint8Array, factor: number, rows: string) => `
const base64 = (values) => Buffer.from(Float32Array.from(values).buffer).toString("base64");
writeFileSync(target, Buffer.from("${Buffer.from(graph).toString("base64")}", "base64"));
const run = (rows) => {
  const values = Array.from({ length: rows * 2 }, (_, i) => i + 1);
  const tensor = (name, list) => ({ name, dtype: "FP32", shape: [rows, 2], data: base64(list) });
  return { inputs: [tensor("x", values)], outputs: [tensor("output", values.map((one) => one * ${factor}))] };
};
writeFileSync(target + ".samples.json", JSON.stringify(${rows}.map(run)));
`;

describe("the exporter of PyTorch, with another program in the place of Python", () => {
  const model = file("net.pt");

  it("gets the file, the shapes and types, and its graph is compared with the outputs of PyTorch", async () => {
    const python = standIn(
      "good",
      `if (settings.inputs.x.shape[0] !== 2 || settings.inputs.x.dtype !== "FP32") fail("error: no");${writing(doubling("rows"), 2, "[2, 3]")}`,
    );
    const onnx = await importModel(model, folder, { python, shapes: { x: [2] } });
    const runner = await ModelRunner.open(onnx);
    expect(runner.inputs.map(({ name, shape }) => [name, shape])).toEqual([["x", [-1, 2]]]);
    await runner.close();
  });

  it("exports again for one row where the graph has a fixed number of rows", async () => {
    const python = standIn(
      "fixed",
      `if (settings.rows) { ${writing(doubling(2), 2, "[2, 3]")} } else { if (settings.inputs.x.shape.join() !== "1,2") fail("error: shape"); ${writing(doubling(1), 2, "[1, 1]")} }`,
    );
    const onnx = await importModel(model, folder, { python, shapes: { x: [2] } });
    const runner = await ModelRunner.open(onnx);
    expect(runner.inputs[0]!.shape).toEqual([1, 2]);
    await runner.close();
  });

  it("refuses a graph whose outputs are others than those of PyTorch", async () => {
    const python = standIn("wrong", writing(doubling("rows"), 3, "[2, 3]"));
    await expect(importModel(model, folder, { python, shapes: { x: [2] } })).rejects.toThrow(
      /cannot export the PyTorch model '.*net\.pt' to ONNX: output 'output': expected the values of PyTorch, got a relative difference of/,
    );
  });

  it.each([
    [
      "error: no torch: No module named 'torch'",
      /expected a Python with torch, got No module named 'torch' from '.*'; install it/,
    ],
    ["error: input 'x': expected its shape", /to ONNX: input 'x': expected its shape/],
    ["Segmentation fault", /ended with 3: Segmentation fault/],
  ])("says what the program said: %s", async (text, message) => {
    const python = standIn("failing", `fail(${JSON.stringify(text)});`);
    await expect(importModel(model, folder, { python })).rejects.toThrow(message);
  });

  it("tells how to install PyTorch if Python is missing", async () => {
    await expect(importModel(model, folder, { python: join(folder, "missing") })).rejects.toThrow(
      /expected a Python with torch, got spawn .*missing ENOENT .* install it \(pip install torch, or apt-get install python3-torch\)/,
    );
  });
});
