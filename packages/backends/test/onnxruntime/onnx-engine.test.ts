import { readFile } from "node:fs/promises";
import { type OnnxRuntimeOptions, onnxruntime } from "@tritonjs/backends/onnxruntime";
import { type DataType, Triton } from "@tritonjs/core";
import { repository as withRepository } from "@tritonjs/repository";
import { VirtualClock } from "@tritonjs/testing";
import { afterAll, describe, expect, it } from "vitest";
import { type OnnxNode, type OnnxValue, onnxModel } from "../../../../examples/onnx-writer/onnx-writer.js";
import { irisModel } from "../../../../test/support/iris.js";
import { identityOnnx, matrixOnnx, onnxTypes, roundsOnnx } from "../../../../test/support/onnx-models.js";
import { outcomeOf, outcomesOf, thrownBy } from "../../../../test/support/outcome.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

const lines: string[] = [];
const log = (line: unknown) => void lines.push(String(line));
const triton = new Triton({ logger: { error: log, warn: log, info: log, debug: log } });
afterAll(() => triton.close());

let count = 0;
type AnyHandle = ReturnType<Triton["bind"]>;

/** A model on the engine `native`. */
const native = (
  model: OnnxRuntimeOptions["model"],
  config: NonNullable<Parameters<Triton["bind"]>[0]["config"]> = {},
  more: Partial<OnnxRuntimeOptions> = {},
): AnyHandle =>
  triton.bind({
    modelName: `native-${count++}`,
    inferFunc: onnxruntime({ model, engine: "native", ...more }),
    config,
  });

const bytes = (text: string) => Uint8Array.from(Buffer.from(text, "latin1"));

/** Two rows of two elements, at the limits of the data type. Halves are given by their bits. */
const limits: Readonly<Record<DataType, readonly unknown[]>> = {
  BOOL: [true, false, false, true],
  UINT8: [0, 1, 128, 255],
  UINT16: [0, 1, 32768, 65535],
  UINT32: [0, 1, 2 ** 31, 2 ** 32 - 1],
  UINT64: [0n, 1n, 2n ** 63n, 2n ** 64n - 1n],
  INT8: [0, -1, -128, 127],
  INT16: [0, -1, -32768, 32767],
  INT32: [0, -1, -(2 ** 31), 2 ** 31 - 1],
  INT64: [0n, -1n, -(2n ** 63n), 2n ** 63n - 1n],
  FP16: [0, -1.5, 65504, Number.POSITIVE_INFINITY],
  BF16: [0, -1.5, 1e30, Number.NEGATIVE_INFINITY],
  FP32: [0, -1.5, 3.4e38, Number.NEGATIVE_INFINITY],
  FP64: [0, -1.5, 1e300, Number.NaN],
  BYTES: ["", "ä€𝄞", bytes("nul\0inside"), bytes("\xff\xfe")],
};

const graph = (inputs: OnnxValue[], outputs: OnnxValue[], nodes: OnnxNode[]) =>
  onnxModel({ name: "graph", opset: 17, inputs, outputs, nodes });
const float = (name: string, dims: OnnxValue["dims"]): OnnxValue => ({
  name,
  elemType: "FLOAT",
  ...(dims && { dims }),
});

/**
 * The outcome of a request, on a clock that goes on in steps until then. With steps of 0 no time passes, however long a
 * busy machine takes for a short batch.
 */
async function outcomeOn(clock: VirtualClock, stepMs: number, request: Promise<unknown>): Promise<string> {
  let outcome: string | undefined;
  void outcomeOf(request).then((settled) => {
    outcome = settled;
  });
  while (outcome === undefined) await clock.advance(stepMs);
  return outcome;
}

describe("the engine 'native'", () => {
  it.each(Object.entries(limits))("passes %s through as a callback does", async (name, elements) => {
    const datatype = name as DataType;
    const elemType = datatype === "BF16" ? "BFLOAT16" : onnxTypes[datatype];
    const handle = native(identityOnnx(elemType, ["batch", 2]), { maxBatchSize: 8 });
    const callback = triton.bind({
      modelName: `callback-${datatype}`,
      inputs: [{ name: "x", dtype: datatype, shape: [2] }],
      outputs: [{ name: "y", dtype: datatype, shape: [2] }],
      inferFunc: (requests) => requests.map(({ inputs }) => ({ y: inputs.x })),
    });
    const x = [elements.slice(0, 2), elements.slice(2)];
    const { y } = await triton.infer(handle.name, { x });
    expect(y!.shape).toEqual([2, 2]);
    expect(y!.data).toEqual((await triton.infer(callback.name, { x })).y!.data);
  });

  it("answers as the engine 'worker' does, bit for bit", async () => {
    const worker = triton.bind({ modelName: "worker", inferFunc: onnxruntime({ model: irisModel }) });
    const handle = native(irisModel);
    const measurements = Array.from({ length: 4 }, (_, i) => [5.1 + i, 3.5, 1.4 * i, 0.2]);
    const [ours, theirs] = await Promise.all(
      [handle, worker].map(({ name }) => triton.infer(name, { measurements })),
    );
    expect(ours).toEqual(theirs);
    expect(handle.metadata()).toEqual({ ...worker.metadata(), name: handle.name });
  });

  it("gives each request of a batch its own rows, whatever batches came before", async () => {
    const handle = native(matrixOnnx(), { maxBatchSize: 16, instanceGroup: [{ count: 2 }] });
    for (const requests of [12, 3, 7, 2, 16]) {
      const rows = Array.from({ length: requests }, (_, i) => [i, requests, i * i, i + 1]);
      const answers = await Promise.all(rows.map((x) => handle.inferSample({ x })));
      expect(answers.map(({ twice }) => [...(twice!.data as Float32Array)])).toEqual(
        rows.map((row) => row.map((value) => 2 * value)),
      );
    }
    expect(handle.statistics().executionCount).toBeLessThan(40);
  });

  it("takes scalars and empty tensors, and returns outputs of shapes that only a run tells", async () => {
    const scalar = native(identityOnnx("INT32", []));
    expect([...((await scalar.infer({ x: 7 })).y!.data as Int32Array)]).toEqual([7]);
    const empty = native(identityOnnx("FLOAT", ["n"]), { maxBatchSize: 0 });
    expect((await empty.infer({ x: new Float32Array(0) })).y).toMatchObject({ shape: [0] });
    const places = native(
      graph(
        [float("x", ["n"])],
        [{ name: "at", elemType: "INT64", dims: [1, null] }],
        [{ op: "NonZero", inputs: ["x"], outputs: ["at"] }],
      ),
      { maxBatchSize: 0 },
    );
    for (const [x, at] of [
      [
        [0, 3, 0, 4],
        [1n, 3n],
      ],
      [[1], [0n]],
      [[0, 0], []],
    ] as const) {
      expect([...((await places.infer({ x: [...x] })).at!.data as BigInt64Array)]).toEqual(at);
    }
  });

  it("believes a run more than the shape in the file", async () => {
    const twice = graph(
      [float("x", ["n"])],
      // Wrong: it has twice as many elements.
      [float("y", ["n"])],
      [{ op: "Concat", inputs: ["x", "x"], outputs: ["y"], attributes: { axis: { int: 0 } } }],
    );
    const handle = native(twice, { maxBatchSize: 0 });
    for (const x of [
      [1, 2],
      [3, 4, 5],
    ]) {
      expect([...((await handle.infer({ x })).y!.data as Float32Array)]).toEqual([...x, ...x]);
    }
  });

  it("ends a running batch when its requests are cancelled, and then runs the next one", async () => {
    const handle = native(roundsOnnx(), { instanceGroup: [{ count: 1 }] });
    const controller = new AbortController();
    const endless = handle.inferSample({ x: [1e9] }, { signal: controller.signal });
    await expect.poll(() => handle.instances()[0]!.busy).toBe(true);
    const next = handle.inferSample({ x: [1] });
    controller.abort();
    expect(await outcomeOf(endless)).toMatch(/^CANCELLED/);
    expect([...((await next).y!.data as Float32Array)]).toEqual([2]);
  });

  it("ends a batch that exceeds the execution time limit", async () => {
    const clock = new VirtualClock();
    await using other = new Triton({ clock });
    const handle = other.bind({
      modelName: "rounds",
      inferFunc: onnxruntime({ model: roundsOnnx(), engine: "native" }),
      config: { instanceGroup: [{ count: 1, executionTimeoutMs: 100 }] },
    });
    expect(await outcomeOn(clock, 0, handle.ready())).toBe("done");
    expect(await outcomeOn(clock, 50, handle.inferSample({ x: [1e9] }))).toMatch(
      /^UNAVAILABLE instance '.*' of model '.*' ended its batch: it ran for more than 100 ms$/,
    );
    expect(await outcomeOn(clock, 0, handle.inferSample({ x: [1] }))).toBe("done");
  });

  it("leaves threads of libuv's pool for files, however many batches run and wait", async () => {
    const controller = new AbortController();
    const handle = native(roundsOnnx(), { maxBatchSize: 1, instanceGroup: [{ count: 8 }] });
    const endless = Array.from({ length: 8 }, () =>
      handle.inferSample({ x: [1e9] }, { signal: controller.signal }),
    );
    await expect.poll(() => handle.instances().every(({ busy }) => busy)).toBe(true);
    const [file] = await Promise.all([readFile(irisModel), native(irisModel).ready()]);
    expect(file.byteLength).toBeGreaterThan(0);
    controller.abort();
    expect(new Set(await outcomesOf(endless)).size).toBe(1);
  });

  it("closes while batches run", async () => {
    const other = new Triton({ exitTimeoutSecs: 0 });
    const inferFunc = onnxruntime({ model: roundsOnnx(), engine: "native" });
    const handle = other.bind({ modelName: "rounds", inferFunc, config: { instanceGroup: [{ count: 2 }] } });
    const endless = [1, 2].map(() => handle.inferBatch({ x: [[1e9]] }));
    const outcomes = outcomesOf(endless);
    await expect.poll(() => handle.instances().some(({ busy }) => busy)).toBe(true);
    await other.close();
    for (const outcome of await outcomes) expect(outcome).toMatch(/^UNAVAILABLE/);
  });

  it("reports a model that does not load, with ONNX Runtime's words", async () => {
    const broken = graph(
      [float("x", ["n"])],
      [float("y", ["n"])],
      [{ op: "NoSuchOperator", inputs: ["x"], outputs: ["y"] }],
    );
    expect(await outcomeOf(native(broken).ready())).toMatch(
      /INVALID_ARG .*cannot load the ONNX model given as bytes: .*NoSuchOperator/s,
    );
  });

  it("skips providers that cannot be used, with a warning", async () => {
    const warnings: string[] = [];
    const onWarning = (text: string) => void warnings.push(text);
    const handle = native(irisModel, {}, { executionProviders: ["nonesuch"], onWarning });
    await handle.ready();
    expect(handle.instances()[0]!.details.executionProvider).toBe("cpu");
    expect(warnings).toEqual([
      expect.stringMatching(/^model '.*': execution provider 'nonesuch' cannot be used: .*; trying 'cpu'$/),
    ]);
  });

  it("is refused for instances that it cannot serve", async () => {
    const outcome = (...of: Parameters<typeof native>) => outcomeOf((async () => native(...of).ready())());
    expect(await outcome(irisModel, { instanceGroup: [{ isolation: "process" }] })).toBe(
      "INVALID_ARG engine 'native': expected instances without isolation, got 'process'; use the engine 'worker'",
    );
    expect(thrownBy(() => onnxruntime({ model: irisModel, engine: "gpu" as "auto" }))).toBe(
      "INVALID_ARG engine of the ONNX model: expected one of worker, native, auto, wasm, got 'gpu'",
    );
  });
});

describe("the engine 'auto'", () => {
  const engineOf = async (handle: AnyHandle) => {
    await handle.ready();
    return handle.instances()[0]!.details.engine ?? "worker";
  };

  it("is 'native' for a model on the CPU", async () => {
    expect(await engineOf(native(irisModel, {}, { engine: "auto" }))).toBe("native");
  });

  it("is 'worker' where 'native' cannot serve, with the reason in the log", async () => {
    const auto = { engine: "auto" } as const;
    const limited = native(irisModel, { instanceGroup: [{ heapLimitMb: 200 }] }, auto);
    expect(await engineOf(limited)).toBe("worker");
    expect(lines.join("\n")).toContain(
      `model '${limited.name}': ONNX Runtime runs in workers: expected instances without heapLimitMb`,
    );
    const many = native(matrixOnnx(), { instanceGroup: [{ count: 3 }] }, auto);
    // Three instances do not fit into libuv's default pool.
    expect(await engineOf(many)).toBe(Number(process.env.UV_THREADPOOL_SIZE) > 4 ? "native" : "worker");
  });
});

describe("a model without an engine", () => {
  it("runs on 'native' if it has options that onnxruntime-node does not pass on, else on 'worker'", async () => {
    const engineOf = async (options: Partial<OnnxRuntimeOptions>, hosting = {}) => {
      const warnings: string[] = [];
      const handle = triton.bind({
        modelName: `default-${count++}`,
        inferFunc: onnxruntime({ model: irisModel, onWarning: (text) => warnings.push(text), ...options }),
        config: { instanceGroup: [hosting] },
      });
      await handle.ready();
      return [handle.instances()[0]!.details.engine ?? "worker", warnings];
    };
    const runConfig = { "memory.enable_memory_arena_shrinkage": "cpu:0" };
    expect(await engineOf({})).toEqual(["worker", []]);
    expect(await engineOf({ runConfig })).toEqual(["native", []]);
    expect(await engineOf({ globalThreads: { intra: 1, inter: 1 } })).toEqual(["native", []]);
    const text =
      "options 'runConfig' have no effect: onnxruntime-node does not pass them on; use the engine 'native'";
    expect(await engineOf({ runConfig, engine: "worker" })).toEqual([
      "worker",
      [expect.stringContaining(text)],
    ]);
    expect(await engineOf({ runConfig }, { isolation: "process" })).toEqual([
      "worker",
      [expect.stringContaining(`${text} (expected instances without isolation, got 'process')`)],
    ]);
  });
});

describe("a model of a repository", () => {
  it("names its engine in its configuration, or in the settings of the backend", async () => {
    const parameter = 'parameters { key: "engine" value: { string_value: "native" } }';
    const limit = 'parameters { key: "execution_timeout_ms" value: { string_value: "100" } }';
    const config = `backend: "onnxruntime" max_batch_size: 4 ${limit}`;
    await using repository = await RepositoryOnDisk.create({
      "parameter/1/model.onnx": roundsOnnx(),
      "parameter/config.pbtxt": `${config} ${parameter}`,
      "half/1/model.onnx": identityOnnx("BFLOAT16", ["batch", 2]),
    });
    const clock = new VirtualClock();
    await using server = new Triton({
      clock,
      extensions: [
        withRepository({
          modelRepository: repository.path,
          backendConfig: { onnxruntime: { engine: "auto" } },
        }),
      ],
    });
    await server.ready();
    expect(await outcomeOn(clock, 50, server.infer("parameter", { x: [[1e9]] }))).toMatch(
      /ran for more than 100 ms$/,
    );
    expect(await outcomeOn(clock, 0, server.infer("parameter", { x: [[1]] }))).toBe("done");
    const half = server.infer("half", { x: [[1.5, -2]] });
    expect(await outcomeOn(clock, 0, half)).toBe("done");
    const { y } = await half;
    expect([...(y!.data as Uint16Array)]).toEqual([0x3fc0, 0xc000]);
  });
});
