import { Triton } from "@tritonjs/core";
import { describe, expect, it } from "vitest";
import { onnxModel } from "../../../../examples/onnx-writer/onnx-writer.js";
import { identityOnnx } from "../../../../test/support/onnx-models.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

const identity = identityOnnx("FLOAT", ["batch", 2]);

const withOpenVino = `optimization { execution_accelerators { cpu_execution_accelerator : [ {
  name : "openvino" parameters { key: "num_streams" value: "2" } } ] } }`;

const parameter = (key: string, value: string) =>
  `parameters { key: "${key}" value { string_value: "${value}" } }`;

/** Serves one model, and returns its state in the index and the log lines. */
async function load(config: string, file: Uint8Array = identity) {
  await using models = await RepositoryOnDisk.create({
    "m/config.pbtxt": `backend: "onnxruntime" instance_group [ { count: 1 } ] ${config}`,
    "m/1/model.onnx": file,
  });
  const lines: string[] = [];
  const take = (line: string) => void lines.push(line);
  const logger = { error: take, warn: take, info() {}, debug() {} };
  await using triton = new Triton({ modelRepository: models.path, logger, exitOnError: false });
  await triton.ready().catch(() => {});
  const [row] = await triton.service.repositoryIndex(false);
  const answer = row?.state === "READY" ? [...(await triton.infer("m", { x: [[1, 2]] })).y!.data] : [];
  return { state: row?.state, reason: row?.reason, lines, answer };
}

describe("a requested execution provider", () => {
  it("is skipped with a warning when it is missing", async () => {
    const { state, lines, answer } = await load(withOpenVino);
    expect({ state, answer }).toEqual({ state: "READY", answer: [1, 2] });
    expect(lines).toContainEqual(
      expect.stringMatching(/execution provider 'openvino' cannot be used: .*; trying 'cpu'/),
    );
  });

  it("must exist in strict mode", async () => {
    const { state, reason } = await load(
      `${withOpenVino} ${parameter("strict_execution_providers", "true")}`,
    );
    expect(state).toBe("UNAVAILABLE");
    expect(reason).toMatch(/^Invalid argument: cannot load the ONNX model '.*': .*openvino/);
  });

  it("must be one that Triton knows", async () => {
    const { reason } = await load(withOpenVino.replace("openvino", "abacus"));
    expect(reason).toMatch(/unknown Execution Accelerator 'abacus' is requested/);
  });
});

describe("external weights of an ONNX model", () => {
  const weights = Float32Array.of(0, 10, 20);
  const file = onnxModel({
    name: "external",
    opset: 17,
    inputs: [{ name: "x", elemType: "FLOAT", dims: ["batch", 2] }],
    outputs: [{ name: "y", elemType: "FLOAT", dims: ["batch", 2] }],
    nodes: [{ op: "Add", inputs: ["x", "w"], outputs: ["y"] }],
    initializers: [
      { name: "w", dims: [2], data: weights.subarray(1), external: { location: "data/w.bin", offset: 4 } },
    ],
  });

  it("are read for a model file and for a model directory", async () => {
    const bytes = new Uint8Array(weights.buffer);
    await using models = await RepositoryOnDisk.create({
      "plain/1/model.onnx": file,
      "plain/1/data/w.bin": bytes,
      "folder/1/model.onnx/model.onnx": file,
      "folder/1/model.onnx/data/w.bin": bytes,
    });
    const logger = { error() {}, warn() {}, info() {}, debug() {} };
    await using triton = new Triton({ modelRepository: models.path, logger, exitOnError: false });
    await triton.ready();
    for (const name of ["plain", "folder"]) {
      expect([...(await triton.infer(name, { x: [[1, 2]] })).y!.data]).toEqual([11, 22]);
    }
  });

  it("are named as the reason when they are missing", async () => {
    const { state, reason } = await load("", file);
    expect(state).toBe("UNAVAILABLE");
    expect(reason).toMatch(/^Invalid argument: cannot load the ONNX model '.*': .*w\.bin/);
  });
});

describe("an invalid ONNX model is reported in the index", () => {
  const graph = (op: string, elemType: "FLOAT" | "UINT8" | "STRING") =>
    onnxModel({
      name: "m",
      opset: 17,
      inputs: [{ name: "x", elemType, dims: [1, 2] }],
      outputs: [{ name: "y", elemType, dims: [1, 2] }],
      nodes: [{ op, inputs: ["x"], outputs: ["y"] }],
    });

  it.each<[what: string, file: Uint8Array, reason: RegExp]>([
    ["an unknown operator", graph("Frobnicate", "FLOAT"), /cannot load the ONNX model .*Frobnicate/],
    ["an operator that does not accept its type", graph("Sin", "UINT8"), /cannot load the ONNX model .*Sin/],
    ["an operator that does not accept strings", graph("Neg", "STRING"), /cannot load the ONNX model .*Neg/],
    [
      "bfloat16",
      identityOnnx("BFLOAT16", ["n"]),
      /input 'x' of type bfloat16, which onnxruntime-node cannot pass; cast it to float32 or float16/,
    ],
  ])("with %s", async (_what, file, reason) => {
    expect(await load("", file)).toMatchObject({
      state: "UNAVAILABLE",
      reason: expect.stringMatching(reason),
    });
  });
});
