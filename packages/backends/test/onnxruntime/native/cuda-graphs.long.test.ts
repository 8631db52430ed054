import { Triton } from "@tritonjs/core";
import { elementCount } from "@tritonjs/protocol";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import ndarray from "ndarray";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { onnxModel } from "../../../../../examples/onnx-writer/onnx-writer.js";
import { cCompiler, openCudaHome, withoutCompiler } from "../../../../../test/support/cudart-stand-in.js";
import { matrixOnnx } from "../../../../../test/support/onnx-models.js";
import { outcomeOf } from "../../../../../test/support/outcome.js";
import { RepositoryOnDisk } from "../../../../../test/support/repository-on-disk.js";
import { type GpuOptions, gpu } from "../../../src/gpu/index.js";
import { onnxruntime, repositoryBackends } from "../../../src/onnxruntime/index.js";
import { type RecordingLibrary, recordingLibrary } from "./recording-library.js";

/*
 * CUDA graphs against a stand-in for ONNX Runtime with CUDA, which records the number of the graph of each run, and a
 * stand-in for CUDA's runtime library. Nothing is captured here: ONNX Runtime does that, by these numbers.
 */

let home: Awaited<ReturnType<typeof openCudaHome>>;
let recording: RecordingLibrary;
let failing: Record<string, string>;
let triton: Triton;
let lines: string[];
const line = (message: string) => void lines.push(message);
const logger = { error: line, warn: line, info() {}, debug() {} };

/** The backends of these sources, which know the stand-in. */
const { onnxruntime: backend } = repositoryBackends;
const backends = { onnxruntime: backend! };

const rows = (count: number) => Array.from({ length: count }, (_, i) => [i, 1, 2, 3]);

/** Serves a model from a repository with a configuration, on the GPU of the stand-ins. */
async function serve(config: string, options: GpuOptions = {}, model = matrixOnnx()): Promise<string> {
  await using models = await RepositoryOnDisk.create({
    "m/1/model.onnx": model,
    "m/config.pbtxt": `backend: "onnxruntime" instance_group [ { kind: KIND_GPU } ]
      parameters { key: "library" value { string_value: "${recording.library}" } } ${config}`,
  });
  triton = new Triton({
    logger,
    extensions: [
      repository({ modelRepository: models.path, backends, exitOnError: false }),
      gpu({ numbers: [0], ...options }),
    ],
  });
  await triton.ready();
  return (await serviceOf(triton).repositoryIndex(false))[0]!.reason ?? "";
}

async function infer(count: number): Promise<void> {
  const { twice, product } = await triton.infer("m", { x: rows(count) });
  const expected = rows(count)
    .flat()
    .map((value) => 2 * value);
  expect([...(twice!.data as Float32Array)]).toEqual(expected);
  expect(product!.shape).toEqual([count, 3]);
}

/** The graph of each run: a number that is equal for runs of one graph, or -1. Numbers here begin with 0. */
function graphs(): number[] {
  const ids = recording.runs.filter(([name]) => name === "run").map(([, given]) => given?.gpu_graph_id);
  const distinct = [...new Set(ids.filter((id) => id !== "-1"))];
  return ids.map((id) => (id === "-1" ? -1 : distinct.indexOf(id)));
}

const GRAPHS = "optimization { cuda { graphs: true } }";

describe.skipIf(cCompiler === undefined)(`CUDA graphs of ONNX Runtime${withoutCompiler}`, () => {
  beforeAll(async () => {
    home = await openCudaHome();
  });
  afterAll(() => home[Symbol.asyncDispose]());
  beforeEach(() => {
    lines = [];
    failing = {};
    recording = recordingLibrary({ providers: ["CUDAExecutionProvider"], failing });
  });
  afterEach(async () => {
    await triton.close();
    recording[Symbol.dispose]();
  });

  it("are captured for one row, the preferred batch sizes and the largest, and one serves each size", async () => {
    await serve(`max_batch_size: 32 ${GRAPHS} dynamic_batching { preferred_batch_size: [ 8 ] }`);
    expect(recording.calls).toContainEqual(["updateCudaOptions", { device_id: "0", enable_cuda_graph: "1" }]);
    for (const count of [1, 5, 8, 1, 32, 8, 17]) await infer(count);
    expect(graphs()).toEqual([0, -1, 1, 0, 2, 1, -1]);
  });

  it("follow graph_spec: batches between the bound and the graph are padded by rows and cut again", async () => {
    await serve(`max_batch_size: 16 optimization { cuda { graphs: true
      graph_spec [
        { batch_size: 4 graph_lower_bound { batch_size: 2 } },
        { batch_size: 8 graph_lower_bound { batch_size: 3 } },
        { batch_size: 16 } ] } }`);
    for (const count of [1, 2, 3, 4, 5, 8, 9, 16]) await infer(count);
    expect(graphs()).toEqual([-1, 0, 0, 0, 1, 1, -1, 2]);
    // The graph has its own binding, whose addresses stay.
    const bindings = new Map<string, Set<string>>();
    for (const [, given] of recording.runs.filter(([name]) => name === "run")) {
      const { gpu_graph_id: id, binding } = given!;
      bindings.set(id!, (bindings.get(id!) ?? new Set()).add(binding!));
    }
    for (const [id, used] of bindings) if (id !== "-1") expect(used.size).toBe(1);
  });

  it("are captured anew when a larger batch has moved the memory", async () => {
    await serve(`max_batch_size: 64 optimization { cuda { graphs: true
      graph_spec [ { batch_size: 1 }, { batch_size: 64 } ] } }`);
    for (const count of [1, 1, 64, 1, 64, 1]) await infer(count);
    expect(graphs()).toEqual([0, 0, 1, 2, 1, 2]);
  });

  it("are of one instance each, and run one at a time", async () => {
    await serve(`max_batch_size: 4 ${GRAPHS} instance_group [ { kind: KIND_GPU count: 2 } ]`);
    await Promise.all(Array.from({ length: 8 }, () => infer(4)));
    expect(new Set(graphs()).size).toBeLessThanOrEqual(4);
    expect(graphs()).not.toContain(-1);
  });

  it("are for inputs of the dims that graph_spec names", async () => {
    await serve(`max_batch_size: 4 optimization { cuda { graphs: true graph_spec [
      { batch_size: 4 input { key: "x" value { dim: [ 5 ] } } },
      { batch_size: 2 input { key: "x" value { dim: [ 4 ] } } graph_lower_bound {
        batch_size: 1 input { key: "x" value { dim: [ 2 ] } } } } ] } }`);
    for (const count of [4, 2, 1]) await infer(count);
    expect(graphs()).toEqual([-1, 0, 0]);
  });

  it("run inputs between the lower bound and the graph, padded with zeros, and cut the outputs again", async () => {
    const spec = (batch: number, dims: string, least: number, lowest: string) =>
      `{ batch_size: ${batch} input { key: "x" value { dim: [ ${dims} ] } } graph_lower_bound {
         batch_size: ${least} input { key: "x" value { dim: [ ${lowest} ] } } } }`;
    const specs = [
      spec(4, "8, 2, 6", 2, "5, 2, 1"),
      spec(4, "3, 2, 6", 4, "1, 2, 2"),
      spec(8, "3, 2, 4", 5, "2, 2, 0"),
    ];
    const config = `max_batch_size: 8 optimization { cuda { graphs: true graph_spec [ ${specs} ] } }`;
    await serve(config, {}, imagesOnnx());
    const shapes: readonly (readonly [shape: number[], graph: number])[] = [
      [[4, 8, 2, 6], 0],
      [[2, 5, 2, 3], 0],
      [[4, 3, 2, 6], 1],
      [[4, 3, 2, 2], 1],
      // Fewer rows than the lower bound of that graph has, and too few dims for the other.
      [[3, 3, 2, 6], -1],
      [[4, 3, 2, 1], -1],
      [[6, 2, 2, 4], 2],
      [[8, 3, 2, 5], -1],
      [[8, 2, 2, 0], 2],
      [[4, 7, 2, 5], 0],
    ];
    for (const [shape] of shapes) {
      const x = Float32Array.from({ length: elementCount(shape) }, (_, i) => i + 1);
      const { twice, sum } = await triton.infer("m", { x: ndarray(x, shape) });
      expect(twice!.shape).toEqual(shape);
      expect([...(twice!.data as Float32Array)]).toEqual([...x.map((value) => 2 * value)]);
      const row = x.length / shape[0]!;
      const sums = Array.from({ length: shape[0]! }, (_, i) =>
        x.slice(i * row, (i + 1) * row).reduce((a, b) => a + b, 0),
      );
      expect(sum!.shape).toEqual([shape[0], 1, 1, 1]);
      expect([...(sum!.data as Float32Array)]).toEqual(sums);
    }
    expect(graphs()).toEqual(shapes.map(([, graph]) => graph));
  });

  it("read ragged inputs of up to their elements, and batch inputs with further entries as Triton fills them", async () => {
    const dims = (tokens: number, sums: number) =>
      `input { key: "x" value { dim: [ ${tokens} ] } } input { key: "ends" value { dim: [ ${sums} ] } }`;
    await serve(
      `max_batch_size: 4 input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true } ]
       output [ { name: "twice" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "last" data_type: TYPE_FP32 dims: [ 1 ] } ]
       batch_input [ { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "ends" data_type: TYPE_FP32 source_input: "x" } ]
       batch_output [ { kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: "twice" source_input: "x" } ]
       optimization { cuda { graphs: true graph_spec [
         { batch_size: 4 ${dims(12, 4)} graph_lower_bound { batch_size: 1 ${dims(2, 1)} } } ] } }`,
      {},
      raggedOnnx(),
    );
    for (const count of [2, 12, 13, 3, 1]) {
      const x = Float32Array.from({ length: count }, (_, i) => i + 1);
      const { twice, last } = await triton.infer("m", { x: ndarray(x, [1, count]) });
      expect([...(twice!.data as Float32Array)]).toEqual([...x.map((value) => 2 * value)]);
      // All further entries are those of the last request, so the largest is its own.
      expect([...(last!.data as Float32Array)]).toEqual([count]);
    }
    expect(graphs()).toEqual([0, 0, -1, 0, -1]);
  });

  it("are not used without room on the GPU, because addresses then change", async () => {
    await serve(`max_batch_size: 4 ${GRAPHS}`, { cudaMemoryPoolByteSize: { 0: 0 } });
    await infer(4);
    expect(graphs()).toEqual([-1]);
  });

  it.each([
    ["max_batch_size: 4", "{ batch_size: 5 }", "graph spec expects 'batch_size' to be >= 1 and <= 4"],
    ["max_batch_size: 4", "{ }", "graph spec expects 'batch_size' to be >= 1 and <= 4"],
    ["", "{ batch_size: 1 }", "graph spec expects 'batch_size' to be 0 if 'max_batch_size' is 0"],
    [
      "max_batch_size: 4",
      "{ batch_size: 1 graph_lower_bound { batch_size: 2 } }",
      "graph lower bound spec expects 'batch_size' to be <= graph spec 'batch_size'",
    ],
    [
      "max_batch_size: 4",
      '{ batch_size: 1 input { key: "x" value { dim: [ -1 ] } } }',
      "graph spec expects input 'x' to have dimension >= 0",
    ],
    [
      "max_batch_size: 4",
      '{ batch_size: 1 input { key: "x" value { dim: [ 4 ] } } graph_lower_bound { batch_size: 1 } }',
      "graph lower bound spec expects shape for input 'x'",
    ],
    [
      "max_batch_size: 4",
      `{ batch_size: 1 input { key: "x" value { dim: [ 4 ] } }
         graph_lower_bound { batch_size: 1 input { key: "x" value { dim: [ 5 ] } } } }`,
      "graph lower bound spec expects input 'x' to have dimension <= 4",
    ],
  ])("with '%s' and graph_spec '%s' are refused with Triton's text", async (batching, spec, text) => {
    const reason = await serve(`${batching} optimization { cuda { graphs: true graph_spec [ ${spec} ] } }`);
    expect(reason).toContain(text);
  });

  it("that ONNX Runtime refuses for the model are left out with its text, and CUDA stays", async () => {
    const bind = (modelName: string) =>
      triton.bind({
        modelName,
        inferFunc: onnxruntime({
          model: matrixOnnx(),
          library: recording.library,
          executionProviders: [{ name: "cuda", enable_cuda_graph: true }],
          onWarning: line,
        }),
        config: { maxBatchSize: 4 },
      });
    triton = new Triton({ logger, extensions: [gpu()] });
    const good = bind("good");
    await good.infer({ x: rows(4) });
    expect(good.instances()[0]!.details).toMatchObject({ graphRuns: "1", executionProvider: "cuda" });
    failing.createSession = "This session cannot use the graph capture feature as requested by the user";
    const refused = bind("refused");
    expect(await outcomeOf(refused.infer({ x: rows(4) }))).toBe("done");
    expect(refused.instances()[0]!.details).toMatchObject({ executionProvider: "cuda" });
    expect(refused.instances()[0]!.details).not.toHaveProperty("graphRuns");
    expect(lines).toEqual([
      expect.stringMatching(
        /^model 'refused': CUDA graphs cannot be used: This session .*; trying without them$/,
      ),
    ]);
  });

  it("need a version of ONNX Runtime that tells them apart", async () => {
    triton = new Triton({ logger });
    const old = { ...recording.api, apiVersion: 17, version: "1.17.3", file: "/old/libonnxruntime.so" };
    const { loadedLibraries } = await import("../../../src/onnxruntime/native/ort-c-api.js");
    loadedLibraries.set("/old", old);
    const model = triton.bind({
      modelName: "m",
      inferFunc: onnxruntime({
        model: matrixOnnx(),
        library: "/old",
        executionProviders: [{ name: "cuda", enable_cuda_graph: "1" }],
      }),
      config: { maxBatchSize: 4 },
    });
    expect(await outcomeOf(model.ready())).toContain(
      "CUDA graphs: expected ONNX Runtime 1.18 or newer, got 1.17.3 in '/old/libonnxruntime.so'",
    );
    loadedLibraries.delete("/old");
  });
});

/** `twice` = `x` + `x`, and `sum` of all elements of a row; inputs of any rows, height and width. */
function imagesOnnx(): Uint8Array {
  const dims = ["batch", "height", 2, "width"];
  return onnxModel({
    name: "images",
    opset: 17,
    inputs: [{ name: "x", elemType: "FLOAT", dims }],
    outputs: [
      { name: "twice", elemType: "FLOAT", dims },
      { name: "sum", elemType: "FLOAT", dims: ["batch", 1, 1, 1] },
    ],
    nodes: [
      { op: "Add", inputs: ["x", "x"], outputs: ["twice"] },
      { op: "ReduceSum", inputs: ["x", "axes"], outputs: ["sum"] },
    ],
    initializers: [{ name: "axes", dims: [3], data: BigInt64Array.of(1n, 2n, 3n) }],
  });
}

/** `twice` = `x` + `x` for the elements of all requests, and `last`: the end of each request is the largest so far. */
function raggedOnnx(): Uint8Array {
  return onnxModel({
    name: "ragged",
    opset: 17,
    inputs: [
      { name: "x", elemType: "FLOAT", dims: ["elements"] },
      { name: "ends", elemType: "FLOAT", dims: ["requests"] },
    ],
    outputs: [
      { name: "twice", elemType: "FLOAT", dims: ["elements"] },
      { name: "last", elemType: "FLOAT", dims: ["requests", 1] },
    ],
    nodes: [
      { op: "Add", inputs: ["x", "x"], outputs: ["twice"] },
      { op: "ReduceMax", inputs: ["ends"], outputs: ["most"], attributes: { keepdims: { int: 1 } } },
      { op: "Sub", inputs: ["ends", "ends"], outputs: ["zeros"] },
      { op: "Add", inputs: ["zeros", "most"], outputs: ["all"] },
      { op: "Unsqueeze", inputs: ["all", "axis"], outputs: ["last"] },
    ],
    initializers: [{ name: "axis", dims: [1], data: BigInt64Array.of(1n) }],
  });
}
