import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type OnnxSession, openSession } from "@tritonjs/backends/onnxruntime";
import { openTensorflow } from "@tritonjs/backends/tensorflow";
import { batch, Triton } from "@tritonjs/core";
import type { InstancePlace } from "@tritonjs/core/types";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { identityOnnx, matrixOnnx } from "../../../../test/support/onnx-models.js";
import { outcomeOf } from "../../../../test/support/outcome.js";

const inputs = [{ name: "x", dtype: "FP32", shape: [4] }] as const;
const outputs = [
  { name: "product", dtype: "FP32", shape: [3] },
  { name: "twice", dtype: "FP32", shape: [4] },
] as const;
const ones = [[1, 1, 1, 1]];

let folder: string;
let file: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tritonjs-sessions-"));
  file = join(folder, "matrix.onnx");
  await writeFile(file, matrixOnnx());
});
afterAll(() => rm(folder, { recursive: true }));

/** An instance on the CPU, as `initialize` and callbacks see it. */
const instance = (): { readonly device: InstancePlace } => ({ device: { kind: "KIND_CPU", id: 0 } });

describe("openSession", () => {
  it("gives a callback one session for each instance, which ends with the instance", async () => {
    const sessions = new Set<OnnxSession>();
    await using triton = new Triton();
    const handle = triton.bind({
      modelName: "m",
      inputs,
      outputs,
      inferFunc: batch(async ({ x }, context) => {
        const session = await openSession(pathToFileURL(file), context);
        sessions.add(session);
        return session.run<{ product: "FP32"; twice: "FP32" }>({ x });
      }),
      config: { maxBatchSize: 1, instanceGroup: { count: 2 } },
    });
    const answers = await Promise.all([1, 2, 3, 4].map(() => handle.infer({ x: ones })));
    for (const { product, twice } of answers) {
      expect([...product.data]).toEqual([2, 22, 18]);
      expect([...twice.data]).toEqual([2, 2, 2, 2]);
    }
    expect(sessions.size).toBe(2);
    expect([...sessions].map(({ provider }) => provider)).toEqual(["cpu", "cpu"]);
    await handle.unbind();
    for (const session of sessions) {
      expect(await outcomeOf(session.run({ x: ones }))).toMatch(/released|disposed/);
    }
  });

  it("works in a worker, starting in its initialize", async () => {
    await using triton = new Triton();
    const handle = triton.bind({
      modelName: "m",
      inputs,
      outputs,
      inferFunc: new URL("../../../core/test/behaviours/fixtures/runs-onnx.mjs", import.meta.url),
      config: { parameters: { file } },
    });
    const { product, twice } = await handle.infer({ x: ones });
    expect([[...product.data], [...twice.data]]).toEqual([
      [2, 22, 18],
      [2, 2, 2, 2],
    ]);
  });

  it("accepts the model as bytes, and separates sessions with other options", async () => {
    const one = instance();
    const model = matrixOnnx();
    const session = await openSession(model, one);
    expect(await openSession(Uint8Array.from(model), one)).toBe(session);
    expect(await openSession(model, one, { graphOptimizationLevel: "disabled" })).not.toBe(session);
    expect(await openSession(model, instance())).not.toBe(session);
    expect(session.inputs).toEqual([{ name: "x", dtype: "FP32", shape: [-1, 4] }]);
    expect(session.outputs.map(({ name }) => name)).toEqual(["product", "twice"]);
  });

  it("runs models of scalars and of text", async () => {
    const scalar = await openSession(identityOnnx("INT64", []), instance());
    const { y } = await scalar.run<{ y: "INT64" }>({ x: BigInt64Array.of(7n) });
    expect([y.shape, [...y.data]]).toEqual([[], [7n]]);
    const text = await openSession(identityOnnx("STRING", ["n"]), instance());
    const words = await text.run<{ y: "BYTES" }>({ x: ["a", "ä"] });
    expect(words.y.data.map((bytes) => Buffer.from(bytes).toString())).toEqual(["a", "ä"]);
  });

  it("reports inputs and outputs that the model does not have or cannot accept", async () => {
    const session = await openSession(file, instance());
    expect(await outcomeOf(session.run({ z: ones }))).toBe(
      "INVALID_ARG inputs of the ONNX model: expected [x], got [z]",
    );
    expect(await outcomeOf(session.run({}))).toBe(
      "INVALID_ARG inputs of the ONNX model: expected [x], got []",
    );
    expect(await outcomeOf(session.run({ x: ["a"] }))).toMatch(/^INVALID_ARG .*input 'x' of the ONNX model/);
  });

  it("may be retried after a failure", async () => {
    const one = instance();
    const late = join(folder, "late.onnx");
    expect(await outcomeOf(openSession(late, one))).toMatch(
      /^NOT_FOUND cannot open the ONNX model '.*late.onnx': there is no file /,
    );
    await writeFile(late, matrixOnnx());
    expect((await openSession(late, one)).provider).toBe("cpu");
  });

  it("tries CUDA first on a GPU, and only CUDA in strict mode", async () => {
    const warnings: string[] = [];
    const onGpu = (): { readonly device: InstancePlace } => ({ device: { kind: "KIND_GPU", id: 0 } });
    const onWarning = (line: string) => void warnings.push(line);
    const { provider } = await openSession(file, onGpu(), { onWarning });
    expect(["cuda", "cpu"]).toContain(provider);
    expect(warnings).toHaveLength(provider === "cuda" ? 0 : 1);
    const strict = await outcomeOf(openSession(file, onGpu(), { strictProviders: true }));
    expect(strict === "done").toBe(provider === "cuda");
  });
});

describe("openTensorflow", () => {
  it("returns TensorFlow.js on the CPU, whichever runtime is installed", async () => {
    const tf = await openTensorflow(instance(), { runtime: "cpu" });
    const squares = tf.tidy(() => tf.tensor1d([1, 2, 3]).square().dataSync());
    expect([...squares]).toEqual([1, 4, 9]);
  });

  it("reports what an instance on a GPU needs", async () => {
    const onGpu = { device: { kind: "KIND_GPU", id: 0 } } as const;
    expect(await outcomeOf(openTensorflow(onGpu, { runtime: "wasm" }))).toBe(
      "INVALID_ARG TensorFlow's runtime for an instance on a GPU: expected tfjs-node-gpu, got 'wasm'",
    );
  });
});
