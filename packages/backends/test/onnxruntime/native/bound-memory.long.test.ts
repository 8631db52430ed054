import { Triton } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  type CudartState,
  cCompiler,
  cudartState,
  openCudaHome,
  withoutCompiler,
} from "../../../../../test/support/cudart-stand-in.js";
import { firstDifference } from "../../../../../test/support/first-difference.js";
import { identityOnnx, matrixOnnx } from "../../../../../test/support/onnx-models.js";
import { outcomeOf, outcomesOf } from "../../../../../test/support/outcome.js";
import { RepositoryOnDisk } from "../../../../../test/support/repository-on-disk.js";
import { type GpuOptions, gpu } from "../../../src/gpu/index.js";
import { onnxruntime, repositoryBackends } from "../../../src/onnxruntime/index.js";
import { type RecordingLibrary, recordingLibrary } from "./recording-library.js";

/*
 * Memory of CUDA against two stand-ins: one for CUDA's runtime library, whose "GPU" is memory of this machine, and one
 * for ONNX Runtime with CUDA, which runs on the CPU and records each call.
 */

let home: Awaited<ReturnType<typeof openCudaHome>>;
let cuda: CudartState;

let recording: RecordingLibrary;
let triton: Triton;
let lines: string[];
let failing: Record<string, string>;

const line = (message: string) => void lines.push(message);
const logger = { error: line, warn: line, info() {}, debug() {} };

function open(options: GpuOptions = {}): Triton {
  triton = new Triton({ logger, extensions: [gpu(options)] });
  return triton;
}

/** A model with outputs `product` and `twice` of `x`, on the GPU of the stand-ins. */
function bindMatrix(config: object = {}, model: Uint8Array = matrixOnnx()) {
  return triton.bind({
    modelName: "matrix",
    inferFunc: onnxruntime({
      model,
      library: recording.library,
      executionProviders: ["cuda"],
      onWarning: line,
    }),
    config: { maxBatchSize: 8, ...config },
  });
}

const rows = (count: number, first = 1) => Array.from({ length: count }, (_, i) => [first + i, 1, 2, 3]);

const numbers = (tensor: { readonly data: ArrayLike<unknown> } | undefined) =>
  Array.from(tensor!.data, Number);

const twice = (all: readonly number[][]) => all.flat().map((value) => 2 * value);

/** Bytes of the pools, as the metrics say. */
async function pools(): Promise<Record<string, number>> {
  const text = await triton.metrics.metrics();
  const found = text.matchAll(/^(nv_pinned|tritonjs_cuda)_memory_pool_(total|used)_bytes\S* (\d+)$/gm);
  return Object.fromEntries([...found].map(([, pool, what, value]) => [`${pool} ${what}`, Number(value)]));
}

describe.skipIf(cCompiler === undefined)(`memory for tensors on a GPU${withoutCompiler}`, () => {
  beforeAll(async () => {
    home = await openCudaHome();
    cuda = cudartState(home.library);
  });
  afterAll(() => home[Symbol.asyncDispose]());
  beforeEach(() => {
    lines = [];
    failing = {};
    recording = recordingLibrary({ providers: ["CUDAExecutionProvider"], failing });
  });
  afterEach(async () => {
    cuda.fail(0, 0);
    await triton.close();
    recording[Symbol.dispose]();
    expect(cuda.counts()).toMatchObject({ gpu: 0, pinned: 0 });
  });

  it("is allocated and bound once for each shape: later batches only copy", async () => {
    open();
    const model = bindMatrix();
    for (const count of [1, 3, 8]) await model.infer({ x: rows(count) });
    const before = { ...cuda.counts(), calls: recording.runs.length };
    for (const count of [1, 3, 8, 1, 3, 8]) {
      const { twice: y, product } = await model.infer({ x: rows(count) });
      expect(numbers(y)).toEqual(twice(rows(count)));
      expect(product!.shape).toEqual([count, 3]);
    }
    // Six runs copy one input and two outputs. Nothing is allocated, and ONNX Runtime is only told to run.
    expect(cuda.counts()).toMatchObject({
      gpu: before.gpu,
      pinned: before.pinned,
      streams: before.streams,
      copies: before.copies + 18,
    });
    expect(recording.runs.slice(before.calls).map(([name]) => name)).toEqual(Array(6).fill("run"));
    expect(model.instances()[0]!.details).toMatchObject({
      copiesToDevice: "9",
      copiesFromDevice: "18",
      boundShapes: "3",
      boundBytes: String(3 * 512),
    });
  });

  it("is shared by shapes, keeps sixteen of them bound, and gives right answers for all", async () => {
    open();
    const model = bindMatrix({ maxBatchSize: 40 });
    for (let round = 0; round < 2; round++) {
      for (let count = 1; count <= 40; count++) {
        expect(numbers((await model.infer({ x: rows(count, round) })).twice)).toEqual(
          twice(rows(count, round)),
        );
      }
    }
    expect(model.instances()[0]!.details).toMatchObject({ boundShapes: "16" });
    expect(cuda.counts().gpu).toBe(3);
  });

  it("joins batches in pinned memory, from which one copy takes them to the GPU", async () => {
    open();
    const model = bindMatrix({ batcher: { maxQueueDelayMicroseconds: 20_000, preferredBatchSize: [8] } });
    await model.ready();
    const answers = await Promise.all(rows(8).map((row) => model.infer({ x: [row] })));
    expect(answers.flatMap(({ twice: y }) => numbers(y))).toEqual(twice(rows(8)));
    const { copiesToDevice, pinnedBytes } = model.instances()[0]!.details;
    expect(Number(copiesToDevice)).toBeLessThan(8);
    expect(Number(pinnedBytes)).toBe(3 * 4096);
    expect(await pools()).toEqual({
      "nv_pinned total": 268_435_456,
      "nv_pinned used": 3 * 4096,
      "tritonjs_cuda total": 67_108_864,
      "tritonjs_cuda used": 3 * 512,
    });
    await model.unbind();
    expect(await pools()).toMatchObject({ "nv_pinned used": 0, "tritonjs_cuda used": 0 });
  });

  type Limits = Pick<GpuOptions, "pinnedMemoryPoolByteSize" | "cudaMemoryPoolByteSize">;

  it.each<readonly [Limits, RegExp]>([
    [
      { pinnedMemoryPoolByteSize: 5000 },
      /pool of pinned memory has no room .*--pinned-memory-pool-byte-size/,
    ],
    [
      { cudaMemoryPoolByteSize: { 0: 1000 } },
      /pool of memory of GPU 0 has no room .*--cuda-memory-pool-byte-size/,
    ],
  ])("is bounded by %o: further tensors use other memory, and the log says so once", async (limits, text) => {
    open(limits);
    const model = bindMatrix();
    for (let i = 0; i < 20; i++) {
      const answers = await Promise.all(rows(4, i).map((row) => model.infer({ x: [row] })));
      expect(answers.flatMap(({ twice: y }) => numbers(y))).toEqual(twice(rows(4, i)));
    }
    expect(lines).toEqual([expect.stringMatching(text)]);
    const { "nv_pinned used": pinned = 0, "tritonjs_cuda used": gpu = 0 } = await pools();
    expect(pinned).toBeLessThanOrEqual(limits.pinnedMemoryPoolByteSize ?? Number.POSITIVE_INFINITY);
    expect(gpu).toBeLessThanOrEqual(limits.cudaMemoryPoolByteSize?.[0] ?? Number.POSITIVE_INFINITY);
  });

  it("is not used with pools of 0 bytes, without a word", async () => {
    open({ pinnedMemoryPoolByteSize: 0, cudaMemoryPoolByteSize: { 0: 0 } });
    const model = bindMatrix();
    expect(numbers((await model.infer({ x: rows(2) })).twice)).toEqual(twice(rows(2)));
    expect(cuda.counts()).toMatchObject({ gpu: 0, pinned: 0 });
    expect(lines).toEqual([]);
  });

  it("is refused a limit that is not a number of bytes", () => {
    for (const [options, got] of [
      [
        { pinnedMemoryPoolByteSize: -1 },
        "pinnedMemoryPoolByteSize: expected a number of bytes of 0 or more, got -1",
      ],
      [{ cudaMemoryPoolByteSize: { 1: 0.5 } }, "cudaMemoryPoolByteSize of GPU 1: expected a number of bytes"],
    ] as const) {
      expect(() => new Triton({ logger, extensions: [gpu(options)] })).toThrow(got);
    }
    open();
  });

  it("takes no more than is there: without room on the GPU or in pinned memory, models run as before", async () => {
    open();
    cuda.fail(0, 2);
    const model = bindMatrix();
    const answers = await Promise.all(rows(4).map((row) => model.infer({ x: [row] })));
    expect(answers.flatMap(({ twice: y }) => numbers(y))).toEqual(twice(rows(4)));
    expect(lines.filter((one) => /out of memory \(CUDA error 2\)/.test(one)).length).toBeGreaterThan(0);
    expect(lines.length).toBeLessThanOrEqual(2);
  });

  it("fails a batch with CUDA's words when the GPU disappears, and runs the next one when it is back", async () => {
    open();
    const model = bindMatrix();
    await model.infer({ x: rows(1) });
    cuda.fail(46, 0);
    for (const outcome of await outcomesOf([model.infer({ x: rows(1) }), model.infer({ x: rows(2) })])) {
      expect(outcome).toContain("to or from GPU 0: all CUDA-capable devices are busy or unavailable");
    }
    cuda.fail(0, 0);
    failing.run = "CUDA failure 719: unspecified launch failure";
    expect(await outcomeOf(model.infer({ x: rows(1) }))).toContain("unspecified launch failure");
    delete failing.run;
    expect(numbers((await model.infer({ x: rows(2) })).twice)).toEqual(twice(rows(2)));
  });

  it("carries large tensors, empty batches of memory, cancelled requests and a close in the middle", async () => {
    open();
    const model = bindMatrix({ maxBatchSize: 0, batching: false }, identityOnnx("FLOAT", ["n"]));
    const large = Float32Array.from({ length: 100_000 }, (_, i) => i);
    const { y } = await model.infer({ x: large } as never);
    expect(firstDifference(numbers(y as never), large)).toBe(-1);
    expect(numbers((await model.infer({ x: new Float32Array(0) } as never)).y as never)).toEqual([]);
    const controller = new AbortController();
    const cancelled = Array.from({ length: 5 }, () =>
      model.infer({ x: large } as never, { signal: controller.signal }),
    );
    controller.abort();
    for (const outcome of await outcomesOf(cancelled)) expect(outcome).toMatch(/^(done|CANCELLED)/);
    const last = Array.from({ length: 3 }, () => model.infer({ x: large } as never));
    await triton.close();
    for (const outcome of await outcomesOf(last)) expect(outcome).toMatch(/^(done|UNAVAILABLE|CANCELLED)/);
  });

  it("leaves tensors on the GPU between steps, whose inputs and outputs are bound in turn", async () => {
    open();
    const bind = (modelName: string) =>
      triton.bind({
        modelName,
        inferFunc: onnxruntime({
          model: matrixOnnx(),
          library: recording.library,
          executionProviders: ["cuda"],
        }),
        config: { maxBatchSize: 8 },
      });
    const handles = [bind("a"), bind("b")];
    const ensemble = triton.bindEnsemble({
      modelName: "chain",
      inputs: [{ name: "x", dtype: "FP32", shape: [4] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [4] }],
      steps: [
        { modelName: "a", inputMap: { x: "x" }, outputMap: { twice: "m" } },
        { modelName: "b", inputMap: { x: "m" }, outputMap: { twice: "y" } },
      ],
      config: { maxBatchSize: 8 },
    });
    for (let i = 0; i < 5; i++) {
      const { y } = await ensemble.infer({ x: [[i, 1, 2, 3]] });
      expect(numbers(y)).toEqual([4 * i, 4, 8, 12]);
      const alone = await triton.infer("b", { x: [[i, 1, 2, 3]] });
      expect(numbers(alone.twice as never)).toEqual([2 * i, 2, 4, 6]);
    }
    expect(handles.map((handle) => handle.instances()[0]!.details.copiesToDevice)).toEqual(["5", "5"]);
  });
});

describe.skipIf(cCompiler === undefined)(`pinned memory of a configuration${withoutCompiler}`, () => {
  it.each([
    ["", 3],
    ["optimization { input_pinned_memory { enable: false } }", 2],
    ["optimization { output_pinned_memory { enable: false } }", 1],
    ["optimization { input_pinned_memory { enable: false } output_pinned_memory { enable: false } }", 0],
  ])("follows '%s'", async (optimization, pinnedTensors) => {
    await using _home = await openCudaHome();
    const library = recordingLibrary({ providers: ["CUDAExecutionProvider"] });
    await using models = await RepositoryOnDisk.create({
      "matrix/1/model.onnx": matrixOnnx(),
      "matrix/config.pbtxt": `backend: "onnxruntime" max_batch_size: 8
        instance_group [ { kind: KIND_GPU } ] ${optimization}
        dynamic_batching { max_queue_delay_microseconds: 20000 preferred_batch_size: [ 8 ] }
        parameters { key: "library" value { string_value: "${library.library}" } }`,
    });
    lines = [];
    const { onnxruntime: backend } = repositoryBackends;
    const backends = { onnxruntime: backend! };
    triton = new Triton({
      logger,
      extensions: [repository({ modelRepository: models.path, backends }), gpu({ numbers: [0] })],
    });
    try {
      await triton.ready();
      const answers = await Promise.all(rows(8).map((row) => triton.infer("matrix", { x: [row] })));
      expect(answers.flatMap(({ twice: y }) => numbers(y as never))).toEqual(twice(rows(8)));
      expect((await pools())["nv_pinned used"]).toBe(4096 * pinnedTensors);
    } finally {
      await triton.close();
      library[Symbol.dispose]();
    }
  });
});
