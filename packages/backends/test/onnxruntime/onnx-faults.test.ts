import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type OnnxRuntimeOptions, onnxruntime } from "@tritonjs/backends/onnxruntime";
import { type ModelOptions, Triton } from "@tritonjs/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { onnxModel } from "../../../../examples/onnx-writer/onnx-writer.js";
import { identityOnnx, matrixOnnx } from "../../../../test/support/onnx-models.js";
import { outcomeOf, thrownBy } from "../../../../test/support/outcome.js";

const triton = new Triton();
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tritonjs-onnx-"));
});
afterAll(async () => {
  await triton.close();
  await rm(folder, { recursive: true });
});

let bound = 0;
const bind = (options: OnnxRuntimeOptions, config: ModelOptions = {}) =>
  triton.bind({ modelName: `onnx-${bound++}`, inferFunc: onnxruntime(options), config });
const refusal = (options: OnnxRuntimeOptions, config: ModelOptions = {}) =>
  thrownBy(() => bind(options, config));

describe("a model file", () => {
  it("may be given as a path, a URL or bytes", async () => {
    const path = join(folder, "identity.onnx");
    const bytes = identityOnnx("FLOAT", ["n"]);
    await writeFile(path, bytes);
    for (const model of [path, pathToFileURL(path), bytes]) {
      const { y } = await triton.infer(bind({ model }).name, { x: Float32Array.of(1, 2) });
      expect(y!.data).toEqual(Float32Array.of(1, 2));
    }
  });

  it("is NOT_FOUND at bind, with its path, when it is missing", () => {
    const path = join(folder, "nowhere.onnx");
    expect(refusal({ model: path })).toBe(
      `NOT_FOUND cannot open the ONNX model '${path}': there is no file '${path}'`,
    );
  });

  it("is INVALID_ARG at bind when it is cut short at any byte", async () => {
    const path = join(folder, "cut.onnx");
    const bytes = matrixOnnx();
    for (const length of [0, 1, 20, bytes.byteLength >> 1, bytes.byteLength - 1]) {
      await writeFile(path, bytes.subarray(0, length));
      expect(refusal({ model: path })).toMatch(/^INVALID_ARG cannot read the ONNX model '.*cut\.onnx': /);
    }
  });

  it("is INVALID_ARG at bind when its bytes are random", async () => {
    let state = 12345;
    const random = () => {
      state = (Math.imul(state, 1103515245) + 12345) >>> 0;
      return state >>> 24;
    };
    for (let i = 0; i < 50; i++) {
      expect(refusal({ model: Uint8Array.from({ length: 200 }, random) })).toMatch(
        /^(INVALID_ARG|UNSUPPORTED) (cannot (read|serve) the ONNX model given as bytes|cannot bind model)/,
      );
    }
  });

  it("is INVALID_ARG, with ONNX Runtime's text, when its graph cannot run", async () => {
    const model = onnxModel({
      name: "unknown",
      opset: 17,
      inputs: [{ name: "x", elemType: "FLOAT", dims: ["n"] }],
      outputs: [{ name: "y", elemType: "FLOAT", dims: ["n"] }],
      nodes: [{ op: "NoSuchOperator", inputs: ["x"], outputs: ["y"] }],
    });
    const handle = bind({ model });
    const outcome = await outcomeOf(handle.ready());
    expect(outcome).toMatch(/^INVALID_ARG cannot load the ONNX model given as bytes: .*NoSuchOperator/);
    const entry = (await triton.service.repositoryIndex(false)).find(({ name }) => name === handle.name);
    expect(entry?.reason).toContain("NoSuchOperator");
  });
});

describe("the first dimension of a model file", () => {
  it("turns batching off by default when it is fixed", async () => {
    const handle = bind({ model: identityOnnx("FLOAT", [2, 3]) });
    expect(handle.config()).toMatchObject({ maxBatchSize: 0, input: [{ dims: [2, 3] }] });
    const { y } = await triton.infer(handle.name, { x: new Float32Array(6) });
    expect(y!.shape).toEqual([2, 3]);
  });

  it("is an error when it is fixed and batching is requested", () => {
    expect(refusal({ model: identityOnnx("FLOAT", [2, 3]) }, { maxBatchSize: 8 })).toContain(
      "config.maxBatchSize is 8, but the first dimension of input 'x' in the model file is not variable: its shape " +
        "is [2,3]; set config.batching to false or export the model with a variable first dimension",
    );
  });

  it("is variable when it is written as -1", () => {
    expect(bind({ model: identityOnnx("FLOAT", [-1, 3]) }).config()).toMatchObject({
      maxBatchSize: 4,
      input: [{ dims: [3] }],
    });
  });
});

describe("specifications that contradict the model file", () => {
  it("are all reported at once", () => {
    const problems = thrownBy(() =>
      triton.bind({
        modelName: "contradiction",
        inferFunc: onnxruntime({ model: matrixOnnx() }),
        inputs: [{ name: "z", dtype: "FP32", shape: [4] }],
        outputs: [
          { name: "product", dtype: "FP64", shape: [3] },
          { name: "twice", dtype: "FP32", shape: [5] },
        ],
      }),
    ).split("\n- ");
    expect(problems).toEqual([
      "INVALID_ARG cannot bind model 'contradiction':",
      "input 'z' is not in the model file: expected one of 'x'",
      "input 'x' of the model file is missing: add it to inputs",
      "output 'product': expected dtype FP32, as in the model file, got FP64",
      "output 'twice' has shape [-1,5], but in the model file it is [-1,4]",
    ]);
  });
});

describe("execution providers", () => {
  it("are skipped with a warning when they cannot be used, and the active one is reported", async () => {
    const warnings: string[] = [];
    const handle = bind({
      model: identityOnnx("FLOAT", ["n"]),
      executionProviders: ["no-such-provider", "cpu"],
      onWarning: (message) => warnings.push(message),
    });
    await handle.ready();
    expect(handle.instances()[0]!.details).toEqual({ executionProvider: "cpu" });
    expect(warnings).toEqual([
      expect.stringMatching(
        /^model 'onnx-\d+': execution provider 'no-such-provider' cannot be used: .*; trying 'cpu'$/,
      ),
    ]);
  });

  it("fall back to the CPU even when it is not listed", async () => {
    const warnings: string[] = [];
    const handle = bind({
      model: identityOnnx("FLOAT", ["n"]),
      executionProviders: [{ name: "no-such-provider", deviceId: 0 }],
      onWarning: (message) => warnings.push(message),
    });
    await handle.ready();
    expect([handle.instances()[0]!.details.executionProvider, warnings.length]).toEqual(["cpu", 1]);
  });

  it("put the instance into a process for WebGPU, and are skipped when a thread is required", async () => {
    const options = { model: identityOnnx("FLOAT", ["n"]), executionProviders: ["webgpu"] };
    const process = bind({ ...options, onWarning() {} });
    await process.ready();
    expect(process.instances()).toMatchObject([{ isolation: "process" }]);
    const warnings: string[] = [];
    const thread = bind(
      { ...options, onWarning: (message) => warnings.push(message) },
      { instanceGroup: { isolation: "worker" } },
    );
    await thread.ready();
    expect(thread.instances()).toMatchObject([
      { isolation: "worker", details: { executionProvider: "cpu" } },
    ]);
    expect(warnings).toEqual([
      expect.stringMatching(
        /'webgpu' cannot be used: it crashes when two threads of a process use it: set isolation 'process' for the instance; trying 'cpu'$/,
      ),
    ]);
  });

  it("fail the model in strict mode", async () => {
    const handle = bind({
      model: identityOnnx("FLOAT", ["n"]),
      executionProviders: ["no-such-provider", "cpu"],
      strictProviders: true,
      onWarning: () => expect.fail("there is nothing to fall back to"),
    });
    expect(await outcomeOf(handle.ready())).toMatch(
      /^INVALID_ARG cannot load the ONNX model given as bytes: .*no-such-provider/,
    );
  });
});
