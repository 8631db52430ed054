import { mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { afterAll, describe, expect, it } from "vitest";
import { onnxModel } from "../../../../examples/onnx-writer/onnx-writer.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

const cache = mkdtempSync(join(tmpdir(), "forms-"));
afterAll(() => rmSync(cache, { recursive: true }));

const weights = Float32Array.from({ length: 64 * 32 }, (_, i) => Math.sin(i) / 4);
const x = Float32Array.from({ length: 64 }, (_, i) => Math.cos(i));

function bytes(): Uint8Array {
  return onnxModel({
    name: "product",
    opset: 12,
    inputs: [{ name: "x", elemType: "FLOAT", dims: ["rows", 64] }],
    outputs: [{ name: "y", elemType: "FLOAT", dims: ["rows", 32] }],
    initializers: [{ name: "w", dims: [64, 32], data: weights }],
    nodes: [{ op: "MatMul", inputs: ["x", "w"], outputs: ["y"] }],
  });
}

const exact = Array.from({ length: 32 }, (_, column) =>
  x.reduce((sum, value, row) => sum + value * weights[row * 32 + column]!, 0),
);

async function load(accelerator: string, folder = cache, model: Uint8Array = bytes()) {
  await using models = await RepositoryOnDisk.create({
    "m/config.pbtxt": `backend: "onnxruntime" max_batch_size: 4 optimization { execution_accelerators { ${accelerator} } }`,
    "m/1/model.onnx": model,
  });
  await using triton = new Triton({
    modelRepository: models.path,
    backendConfig: { onnxruntime: { "optimization-cache": folder } },
    logger: { error() {}, warn() {}, info() {}, debug() {} },
    exitOnError: false,
  });
  await triton.ready().catch(() => {});
  const [row] = await triton.service.repositoryIndex(false);
  if (row?.state !== "READY") return { reason: row?.reason, error: Number.NaN };
  const { y } = await triton.infer("m", { x: [[...x]] });
  const error = Math.max(...[...y!.data].map((value, i) => Math.abs(Number(value) - exact[i]!)));
  return { reason: "", error };
}

const cpu = (mode: string) =>
  `cpu_execution_accelerator [ { name: "cpu" parameters { key: "precision_mode" value: "${mode}" } } ]`;

describe("a precision of the configuration", () => {
  it("rewrites the model when it loads, and is found by the file's hash after that", async () => {
    const int8 = await load(cpu("INT8"));
    expect(int8.error).toBeGreaterThan(1e-5);
    expect(int8.error).toBeLessThan(0.05);
    const [file] = readdirSync(cache);
    expect(file).toMatch(/^[0-9a-f]{64}-int8(-7)?-1\.onnx$/);
    const path = join(cache, file!);
    expect(statSync(path).size).toBeLessThan(bytes().length * 0.4);
    utimesSync(path, 1, 1);
    const { ino } = statSync(path);
    expect((await load(cpu("INT8"))).error).toBe(int8.error);
    expect(statSync(path)).toMatchObject({ ino });
    expect(statSync(path).mtimeMs).toBeGreaterThan(1e12);
    const half = await load(cpu("FP16"));
    expect(half.error).toBeGreaterThan(1e-6);
    expect(half.error).toBeLessThan(0.01);
    expect(readdirSync(cache)).toHaveLength(2);
    expect((await load(cpu("FP32"))).error).toBeLessThan(1e-5);
  });

  it("is refused if it is unknown, or the model has no such form, or the cache cannot be written", async () => {
    expect((await load(cpu("FP4"))).reason).toContain("unsupported precision mode 'FP4' is requested");
    const both = `${cpu("INT8")} ${cpu("FP16")}`;
    expect((await load(both)).reason).toContain("expected one for all, got INT8 and FP16");
    const none = onnxModel({
      name: "sum",
      opset: 12,
      inputs: [{ name: "x", elemType: "FLOAT", dims: ["rows", 64] }],
      outputs: [{ name: "y", elemType: "FLOAT", dims: ["rows", 64] }],
      nodes: [{ op: "Add", inputs: ["x", "x"], outputs: ["y"] }],
    });
    expect((await load(cpu("INT8"), cache, none)).reason).toMatch(
      /precision_mode INT8 of the ONNX model '.*': expected layers that have such a form, got none/,
    );
    const file = join(cache, "a-file");
    writeFileSync(file, "");
    expect((await load(cpu("INT8"), join(file, "inside"))).reason).toMatch(
      /cannot make the folder '.*a-file.inside' for forms of models: ENOTDIR.*optimization-cache=<folder>/,
    );
  });

  it("of two models with the same file is made by both at once, and serves both", async () => {
    const folder = join(cache, "two");
    const [a, b] = await Promise.all([load(cpu("INT8"), folder), load(cpu("INT8"), folder)]);
    expect(a.error).toBeLessThan(0.05);
    expect(b.error).toBe(a.error);
    expect(readdirSync(folder)).toHaveLength(1);
  });
});
