import { Tensor, Triton } from "@tritonjs/core";
import type { NdArray } from "ndarray";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { matrixOnnx } from "../../../../../test/support/onnx-models.js";
import { outcomeOf, outcomesOf } from "../../../../../test/support/outcome.js";
import { onnxruntime } from "../../../src/onnxruntime/index.js";
import { type RecordingLibrary, recordingLibrary } from "./recording-library.js";

const silent = { error() {}, warn() {}, info() {}, debug() {} };

let recording: RecordingLibrary;
let triton: Triton;
let failing: Record<string, string>;
beforeEach(() => {
  failing = {};
  recording = recordingLibrary({ providers: ["CUDAExecutionProvider"], failing });
  triton = new Triton({ logger: silent });
});
afterEach(async () => {
  await triton.close();
  recording[Symbol.dispose]();
});

type Handle = ReturnType<Triton["bind"]>;

/** A model that doubles `x`, on a device whose memory the stand-in keeps on the CPU. */
function bindTwice(modelName: string, more: object = {}, config: object = {}): Handle {
  const inferFunc = onnxruntime({
    model: matrixOnnx(),
    engine: "native",
    library: recording.library,
    executionProviders: ["cuda"],
    onWarning: () => {},
    ...more,
  });
  return triton.bind({ modelName, inferFunc, config: { maxBatchSize: 8, ...config } });
}

interface Step {
  readonly modelName: string;
  readonly inputMap: Readonly<Record<string, string>>;
  readonly outputMap: Readonly<Record<string, string>>;
}

/** The steps of a chain of models from `x` to `y`. */
function chain(...models: readonly string[]): Step[] {
  return models.map((modelName, i) => ({
    modelName,
    inputMap: { x: i === 0 ? "x" : `m${i}` },
    outputMap: { twice: i === models.length - 1 ? "y" : `m${i + 1}` },
  }));
}

function bindEnsemble(steps: readonly Step[], outputs = ["y"]) {
  return triton.bindEnsemble({
    modelName: "ensemble",
    inputs: [{ name: "x", dtype: "FP32", shape: [4] }],
    outputs: outputs.map((name) => ({ name, dtype: "FP32" as const, shape: [4] })),
    steps,
    config: { maxBatchSize: 8 },
  });
}

/** Copies to the device and from it, of the only instance of each model. */
const copies = (...handles: readonly Handle[]) =>
  handles.map((handle) => {
    const { copiesToDevice, copiesFromDevice } = handle.instances()[0]!.details;
    return [Number(copiesToDevice), Number(copiesFromDevice)];
  });

const first = (
  answer: Readonly<Record<string, { readonly data: ArrayLike<unknown> } | undefined>>,
  name = "y",
) => [...Array.from(answer[name]!.data)].map(Number);

describe("tensors between ONNX models of an ensemble on a device", () => {
  it("stay on the device: a request is copied to it once and from it once, whatever the number of steps", async () => {
    const handles = ["a", "b", "c"].map((name) => bindTwice(name));
    const ensemble = bindEnsemble(chain("a", "b", "c"));
    await ensemble.ready();
    for (let i = 0; i < 5; i++) {
      expect(first(await ensemble.infer({ x: [[i, 1, 2, 3]] }))).toEqual([8 * i, 8, 16, 24]);
    }
    // In: the request's input. Out: the answer, without the model's second output, which is not asked for.
    expect(copies(...handles)).toEqual([
      [5, 0],
      [0, 0],
      [0, 5],
    ]);
    expect(
      recording.calls.filter(([name]) => name === "bindOutputToDevice").map(([, given]) => given!.name),
    ).toEqual(Array.from({ length: 10 }, () => "twice"));
  });

  it("reach two readers, of which one also answers, without mixing requests", async () => {
    const handles = ["a", "b", "c"].map((name) => bindTwice(name));
    const ensemble = bindEnsemble(
      [
        { modelName: "a", inputMap: { x: "x" }, outputMap: { twice: "m" } },
        { modelName: "b", inputMap: { x: "m" }, outputMap: { twice: "y" } },
        { modelName: "c", inputMap: { x: "m" }, outputMap: { twice: "z" } },
      ],
      ["y", "z"],
    );
    await ensemble.ready();
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, i) => ensemble.infer({ x: [[i, 0, 0, 1]] })),
    );
    for (const [i, answer] of answers.entries()) {
      expect([first(answer), first(answer, "z")]).toEqual([
        [4 * i, 0, 0, 4],
        [4 * i, 0, 0, 4],
      ]);
    }
    expect(handles.length).toBe(3);
  });

  it("come to the CPU for a model that is not on the device, and for a tensor that is part of the answer", async () => {
    const a = bindTwice("a");
    const onCpu = bindTwice("cpu", { library: undefined, executionProviders: ["cpu"] });
    triton.bind({
      modelName: "callback",
      inputs: [{ name: "x", dtype: "FP32", shape: [4] }],
      outputs: [{ name: "twice", dtype: "FP32", shape: [4] }],
      inferFunc: (requests) =>
        requests.map(({ inputs }) => ({
          twice: (inputs.x!.data as Float32Array).map((value: number) => value + 1),
        })),
      config: { maxBatchSize: 8 },
    });
    const ensemble = bindEnsemble(chain("a", "cpu", "callback", "a", "callback"), ["y", "m1"]);
    await Promise.all([a.ready(), onCpu.ready(), ensemble.ready()]);
    const answer = await ensemble.infer({ x: [[1, 2, 3, 4]] });
    expect([first(answer), first(answer, "m1")]).toEqual([
      [11, 19, 27, 35],
      [2, 4, 6, 8],
    ]);
  });

  it("come to the CPU to be joined into one batch", async () => {
    const handles = [bindTwice("a"), bindTwice("b", {}, { instanceGroup: [{ count: 1 }] })];
    const ensemble = bindEnsemble(chain("a", "b"));
    await ensemble.ready();
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, i) => ensemble.infer({ x: [[i, 1, 1, 1]] })),
    );
    expect(answers.map((answer) => first(answer)[0])).toEqual(Array.from({ length: 40 }, (_, i) => 4 * i));
    expect(handles[0]!.statistics().executionCount).toBeLessThanOrEqual(40);
  });

  it("are given up with cancelled requests and with the model that made them", async () => {
    for (const name of ["a", "b"]) bindTwice(name);
    const ensemble = bindEnsemble(chain("a", "b"));
    await ensemble.ready();
    const controller = new AbortController();
    const cancelled = Array.from({ length: 10 }, (_, i) =>
      ensemble.infer({ x: [[i, 1, 1, 1]] }, { signal: controller.signal }),
    );
    controller.abort();
    for (const outcome of await outcomesOf(cancelled)) expect(outcome).toMatch(/^(done|CANCELLED)/);
    expect(first(await ensemble.infer({ x: [[1, 1, 1, 1]] }))).toEqual([4, 4, 4, 4]);
    const last = ensemble.infer({ x: [[1, 1, 1, 1]] });
    await triton.close();
    expect(await outcomeOf(last)).toMatch(/^(done|UNAVAILABLE|CANCELLED)/);
  });
});

describe("tensors between calls of a callback", () => {
  it("stay on the device if the callback only passes them on", async () => {
    const handles = [bindTwice("a"), bindTwice("b")];
    const scripted = triton.bind({
      modelName: "scripted",
      inputs: [{ name: "x", dtype: "FP32", shape: [4] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [4] }],
      inferFunc: (requests, { infer }) =>
        Promise.all(
          requests.map(async ({ inputs }) => {
            const deviceOutputs = ["twice"];
            type Inner = { readonly twice: Tensor };
            const once = await infer<Inner>("a", { x: inputs.x }, { deviceOutputs });
            expect(once.twice).toBeInstanceOf(Tensor);
            const twice = await infer<Inner>("b", { x: once.twice }, { deviceOutputs });
            // A tensor may be passed on more than once, and read.
            const { twice: y } = await infer<{ twice: NdArray<Float32Array> }>("b", { x: twice.twice });
            expect([...(twice.twice.elements as Float32Array)]).toEqual([4, 8, 12, 16]);
            return { y };
          }),
        ),
      config: { maxBatchSize: 8 },
    });
    await Promise.all(handles.map((handle) => handle.ready()));
    expect(first(await scripted.infer({ x: [[1, 2, 3, 4]] }))).toEqual([8, 16, 24, 32]);
    expect(copies(...handles).map(([toDevice]) => toDevice)).toEqual([1, 0]);
  });
});

describe("a model on a device", () => {
  it("fails a batch with ONNX Runtime's words when the device is out of memory or gone, and runs the next one", async () => {
    const handle = bindTwice("a");
    await handle.ready();
    for (const text of [
      "Failed to allocate memory for requested buffer of size 64",
      "CUDA failure 46: device lost",
    ]) {
      failing.bindInput = text;
      expect(await outcomeOf(handle.infer({ x: [[1, 2, 3, 4]] }))).toContain(text);
      delete failing.bindInput;
    }
    expect(first(await handle.infer({ x: [[1, 2, 3, 4]] }), "twice")).toEqual([2, 4, 6, 8]);
  });
});
