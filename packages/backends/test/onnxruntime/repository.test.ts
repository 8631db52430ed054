import { readFile } from "node:fs/promises";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { type ModelConfig, Triton } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";
import { inspectRepository } from "@tritonjs/repository/config";
import { serviceOf } from "@tritonjs/server";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type OnnxElementType,
  type OnnxNode,
  type OnnxValue,
  onnxModel,
} from "../../../../examples/onnx-writer/onnx-writer.js";
import { irisModel } from "../../../../test/support/iris.js";
import { identityOnnx } from "../../../../test/support/onnx-models.js";
import { outcomeOf, thrownBy } from "../../../../test/support/outcome.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { servedOptions } from "../../../../test/support/served-options.js";
import { thrownText } from "../../../core/test/support/requests.js";
import { describeOnnxModel } from "../../src/onnxruntime/describe-onnx-model.js";

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
  await using triton = new Triton({
    logger,
    extensions: [repository({ modelRepository: models.path, exitOnError: false })],
  });
  await triton.ready().catch(() => {});
  const [row] = await serviceOf(triton).repositoryIndex(false);
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
    await using triton = new Triton({
      logger,
      extensions: [repository({ modelRepository: models.path, exitOnError: false })],
    });
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

const iris = await readFile(irisModel);

const accelerator = (kind: string, name: string) =>
  `optimization { execution_accelerators { ${kind}_execution_accelerator [ { name: "${name}" } ] } }`;

/** Reason why an ONNX model with this configuration is not loaded; empty when it is. */
async function reasonFor(config: string, options: object = {}): Promise<string> {
  await using models = await RepositoryOnDisk.create({
    "m/config.pbtxt": `backend: "onnxruntime" instance_group [ { count: 1 } ] ${config}`,
    "m/1/model.onnx": iris,
  });
  const logger = { error() {}, warn() {}, info() {}, debug() {} };
  await using triton = new Triton(
    servedOptions({ modelRepository: models.path, exitOnError: false, logger, ...options }),
  );
  await triton.ready();
  return (await serviceOf(triton).repositoryIndex(false))[0]!.reason ?? "";
}

describe("the configuration of an ONNX model", () => {
  it.each([
    parameter("intra_op_thread_count", "2"),
    parameter("intra_op_thread_count", "-1"),
    parameter("execution_mode", "+1"),
    parameter("enable_mem_arena", "OFF"),
    accelerator("gpu", "zzz"),
  ])("may have %s", async (config) => {
    expect(await reasonFor(config)).toBe("");
  });

  it.each([
    [parameter("inter_op_thread_count", "x"), "failed to convert 'x' to integral number"],
    [parameter("execution_mode", ""), "failed to convert '' to integral number"],
    [parameter("enable_mem_pattern", "yes"), "failed to convert 'yes' to boolean"],
    [accelerator("cpu", "zzz"), "unknown Execution Accelerator 'zzz' is requested"],
    [
      "max_batch_size: 8 batch_input { kind: BATCH_ELEMENT_COUNT target_name: 'n' source_input: 'measurements' }",
      "unexpected batch input data type 'TYPE_INVALID'",
    ],
  ])("may not have %s", async (config, text) => {
    expect(await reasonFor(config)).toMatch(new RegExp(`^Invalid argument: ${text}`));
  });

  it("is not completed from the file with disableAutoCompleteConfig, and must match it", async () => {
    const off = { disableAutoCompleteConfig: true };
    expect(await reasonFor("", off)).toContain(
      "unable to load model 'm', configuration expects 0 inputs, model provides 1",
    );
    expect(await reasonFor('input { name: "measurements" }', off)).toContain(
      "model input 'measurements' must specify 'data_type' for m",
    );
    const input = 'max_batch_size: 2 input { name: "measurements" data_type: TYPE_FP32 dims: 4 }';
    expect(await reasonFor(input, off)).toBe("");
  });
});

type Dims = OnnxValue["dims"];

/** A graph whose nodes compute `y` from `x`; either shape may be left out of the file. */
function graph(x: Dims, y: Dims, nodes: OnnxNode | readonly OnnxNode[] = op("Neg")): Uint8Array {
  const value = (name: string, dims: Dims): OnnxValue => ({
    name,
    elemType: "FLOAT",
    ...(dims === undefined ? {} : { dims }),
  });
  return onnxModel({
    name: "shapes",
    opset: 13,
    inputs: [value("x", x)],
    outputs: [value("y", y)],
    nodes: Array.isArray(nodes) ? nodes : [nodes as OnnxNode],
  });
}

const op = (
  name: string,
  attributes: NonNullable<OnnxNode["attributes"]> = {},
  inputs = ["x"],
  outputs = ["y"],
): OnnxNode => ({ op: name, inputs, outputs, attributes });

/** Adds up all rows: one row is left, whatever the file says. */
const sumOfRows = op("ReduceMax", { axes: { ints: [0] } });

/** The positions of elements other than 0: one column for each. */
const positions = [op("NonZero", {}, ["x"], ["at"]), op("Cast", { to: { int: 1 } }, ["at"], ["y"])];

/** A shape that depends on values: even the rank is unknown. */
const ofUnknownRank = [
  op("NonZero", {}, ["x"], ["at"]),
  op("Squeeze", {}, ["at"], ["flat"]),
  op("Cast", { to: { int: 1 } }, ["flat"], ["y"]),
];

/** Serves one model of a repository while `use` runs. */
async function serve<T>(
  file: Uint8Array,
  config: string,
  use: (triton: Triton, log: string[]) => Promise<T>,
) {
  await using models = await RepositoryOnDisk.create({
    "m/config.pbtxt": `backend: "onnxruntime" instance_group [ { count: 1 } ] ${config}`,
    "m/1/model.onnx": file,
  });
  const log: string[] = [];
  const take = (line: string) => void log.push(line);
  const logger = { error: take, warn: take, info() {}, debug() {} };
  await using triton = new Triton({
    logger,
    extensions: [repository({ modelRepository: models.path, exitOnError: false })],
  });
  await triton.ready().catch(() => {});
  return await use(triton, log);
}

const shown = ({ maxBatchSize, input, output }: ModelConfig) => ({
  maxBatchSize,
  x: input[0]?.dims,
  y: output[0]?.dims,
});

const completed = (file: Uint8Array, config = "") =>
  serve(file, config, async (triton) => shown(serviceOf(triton).modelConfig("m", "")));

const reason = (file: Uint8Array, config: string) =>
  serve(file, config, async (triton) => (await serviceOf(triton).repositoryIndex(false))[0]?.reason);

const answer = (file: Uint8Array, config: string, x: unknown) =>
  serve(file, config, async (triton) => {
    const { y } = await triton.infer("m", { x });
    return { shape: y!.shape, data: [...y!.data] };
  });

describe("completing an ONNX model with the shapes that ONNX Runtime infers", () => {
  it.each<[what: string, file: Uint8Array, expected: ReturnType<typeof shown>]>([
    ["for an output without a shape", graph(["n", 3], undefined), { maxBatchSize: 4, x: [3], y: [3] }],
    ["without batching for fixed sizes", graph([2, 3], undefined), { maxBatchSize: 0, x: [2, 3], y: [2, 3] }],
    [
      "with batching for anonymous first dimensions",
      graph([null, 3], [null, 3]),
      { maxBatchSize: 4, x: [3], y: [3] },
    ],
    [
      "with batching for first dimensions of different names",
      graph(["n", 3], ["m", 3]),
      { maxBatchSize: 4, x: [3], y: [3] },
    ],
    [
      "with batching for one name and one anonymous dimension",
      graph(["n", 3], [null, null]),
      { maxBatchSize: 4, x: [3], y: [3] },
    ],
    [
      "without batching where the file declares a variable first dimension that is always 1",
      graph(["n", 3], ["n", 3], sumOfRows),
      { maxBatchSize: 0, x: [-1, 3], y: [1, 3] },
    ],
    [
      "with the fixed size of an output that the file declares as variable",
      graph([2, 3], [null, "m"]),
      { maxBatchSize: 0, x: [2, 3], y: [2, 3] },
    ],
    [
      "without batching for an output with a declared size",
      graph(["n", 3], [2, 3]),
      { maxBatchSize: 0, x: [-1, 3], y: [2, 3] },
    ],
    [
      "with a rank that is known and sizes that are not",
      graph(["n", 3], undefined, positions),
      { maxBatchSize: 0, x: [-1, 3], y: [2, -1] },
    ],
    [
      "with dims [1] for an output of unknown rank",
      graph(["n", 3], undefined, ofUnknownRank),
      { maxBatchSize: 0, x: [-1, 3], y: [1] },
    ],
    [
      "with the shape of the file where ONNX Runtime infers none",
      graph([1, 3], ["k"], ofUnknownRank),
      { maxBatchSize: 0, x: [1, 3], y: [-1] },
    ],
    [
      "with dims [1] for tensors of unknown rank, as Triton's",
      graph(undefined, undefined),
      { maxBatchSize: 0, x: [1], y: [1] },
    ],
  ])("completes the configuration %s", async (_what, file, expected) => {
    expect(await completed(file)).toEqual(expected);
  });

  it("fills in inputs or outputs when only the others are written", async () => {
    const output = 'output [ { name: "y" data_type: TYPE_FP32 dims: [ 3 ] } ]';
    expect(await completed(graph(["n", 3], undefined), `max_batch_size: 8 ${output}`)).toEqual({
      maxBatchSize: 8,
      x: [3],
      y: [3],
    });
  });

  it("checks written shapes against inferred ones", async () => {
    const tensors = (y: string) =>
      `input [ { name: "x" data_type: TYPE_FP32 dims: [ 2, 3 ] } ] output [ { name: "y" data_type: TYPE_FP32 dims: ${y} } ]`;
    const file = graph([2, 3], [null, "m"]);
    expect(await reason(file, tensors("[ 2, 3 ]"))).toBeUndefined();
    expect(await reason(file, tensors("[ -1, 3 ]"))).toBe(
      "Invalid argument: model 'm', tensor 'y': the model expects 2 dimensions (shape [2,3]) but the model configuration " +
        "specifies 2 dimensions (shape [-1,3])",
    );
  });

  it("also happens in an inspection", async () => {
    const tensors = (y: string) =>
      `input [ { name: "x" data_type: TYPE_FP32 dims: [ 2, 3 ] } ] output [ { name: "y" data_type: TYPE_FP32 dims: ${y} } ]`;
    await using models = await RepositoryOnDisk.create({
      "fits/config.pbtxt": `backend: "onnxruntime" ${tensors("[ 2, 3 ]")}`,
      "fits/1/model.onnx": graph([2, 3], [null, "m"]),
      "fits_not/config.pbtxt": `backend: "onnxruntime" ${tensors("[ -1, 3 ]")}`,
      "fits_not/1/model.onnx": graph([2, 3], [null, "m"]),
      "undeclared/1/model.onnx": graph(["n", 3], undefined),
    });
    const inspected = await inspectRepository([models.path]);
    expect(inspected.map(({ name, findings }) => [name, findings.map(({ message }) => message)])).toEqual([
      ["fits", []],
      ["fits_not", [expect.stringContaining("the model expects 2 dimensions (shape [2,3])")]],
      ["undeclared", [expect.stringContaining("autofilled max_batch_size to 4 for model 'undeclared'")]],
    ]);
  });

  it("allows batches of an output without a shape", async () => {
    expect(
      await answer(graph([null, 2], undefined), "", [
        [1, 2],
        [3, 4],
      ]),
    ).toEqual({
      shape: [2, 2],
      data: [-1, -2, -3, -4],
    });
  });
});

describe("a tensor of unknown rank", () => {
  const tensors = (x: string, y: string) =>
    `input [ { name: "x" data_type: TYPE_FP32 dims: ${x} } ] output [ { name: "y" data_type: TYPE_FP32 dims: ${y} } ]`;
  const unknown = graph(undefined, undefined);

  it("has the dims of the configuration", async () => {
    expect(await answer(unknown, tensors("[ 2, -1 ]", "[ 2, -1 ]"), [[1], [2]])).toEqual({
      shape: [2, 1],
      data: [-1, -2],
    });
  });

  it("may have rows when the configuration says so", async () => {
    expect(await answer(unknown, `max_batch_size: 4 ${tensors("[ 2 ]", "[ 2 ]")}`, [[1, 2]])).toEqual({
      shape: [1, 2],
      data: [-1, -2],
    });
  });

  it("is a scalar for the model unless the configuration says otherwise", async () => {
    const isScalar = [
      op("Shape", {}, ["x"], ["dims"]),
      op("Size", {}, ["dims"], ["rank"]),
      op("Cast", { to: { int: 1 } }, ["rank"], ["y"]),
    ];
    expect(await answer(graph(undefined, undefined, isScalar), "", [5])).toEqual({ shape: [1], data: [0] });
  });

  it("is reported in the log with a remedy", async () => {
    const log = await serve(graph(["n", 3], undefined, ofUnknownRank), "", async (_triton, lines) => lines);
    expect(log).toContainEqual(
      expect.stringContaining(
        "autofilled dims [1] for tensor 'y' of model 'm': its file does not give the number of dimensions, and ONNX " +
          "Runtime cannot infer it. If the tensor has other dims, set them in the model configuration",
      ),
    );
  });

  it("rejects an answer of another shape with dims [1]", async () => {
    expect(await outcomeOf(answer(graph(["n"], undefined, ofUnknownRank), "", [1, 0, 2]))).toBe(
      "INTERNAL model 'm' returned a wrong output 'y': expected shape [1], got [2]",
    );
  });
});

it("dims of a scalar other than 1 are rejected with Triton's text", async () => {
  const scalar = graph([], []);
  const tensors = (dims: string) =>
    `input [ { name: "x" data_type: TYPE_FP32 dims: ${dims} } ] output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]`;
  expect(await reason(scalar, tensors("[ 1, 1 ]"))).toBeUndefined();
  expect(await reason(scalar, tensors("[ 2 ]"))).toBe(
    "Invalid argument: unable to load model 'm', scalar tensor 'x', should only provide 1 in the model configuration when " +
      "the model doesn't support batching. Model configuration provided: [2].",
  );
});

describe("a bound ONNX model whose output has no shape", () => {
  it("gets the shape that ONNX Runtime infers", async () => {
    await using triton = new Triton();
    const handle = triton.bind({
      modelName: "m",
      inferFunc: onnxruntime({ model: graph(["n", 2], undefined) }),
    });
    expect(shown(handle.config())).toEqual({ maxBatchSize: 4, x: [2], y: [2] });
    const { y } = await triton.infer("m", { x: Float32Array.of(1, 2) });
    expect(y!.data).toEqual(Float32Array.of(-1, -2));
  });

  it("has the shape given to bind when its rank is unknown", async () => {
    await using triton = new Triton();
    triton.bind({
      modelName: "m",
      inferFunc: onnxruntime({ model: graph([3], undefined, ofUnknownRank) }),
      inputs: [{ name: "x", dtype: "FP32", shape: [3] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
    });
    const { y } = await triton.infer("m", { x: Float32Array.of(1, 0, 2) });
    expect(y!.data).toEqual(Float32Array.of(0, 2));
  });

  it("is rejected by bind when its session cannot be opened", () => {
    const triton = new Triton();
    const model = graph(["n", 2], undefined, op("NoSuchOperator"));
    expect(thrownBy(() => triton.bind({ modelName: "m", inferFunc: onnxruntime({ model }) }))).toMatch(
      /^INVALID_ARG cannot load the ONNX model given as bytes: .*NoSuchOperator/,
    );
  });
});

describe("the description of a model file", () => {
  const identity = (elemType: OnnxElementType, dims: readonly (number | string)[]) =>
    onnxModel({
      name: "identity",
      opset: 17,
      inputs: [{ name: "x", elemType, dims }],
      outputs: [{ name: "y", elemType, dims }],
      nodes: [{ op: "Identity", inputs: ["x"], outputs: ["y"] }],
    });

  describe("describing an ONNX file", () => {
    it("reads inputs and outputs, with -1 for dimensions known only at run time", () => {
      expect(describeOnnxModel(identity("FLOAT", ["batch", 4]))).toEqual({
        inputs: [{ name: "x", dtype: "FP32", shape: [-1, 4] }],
        optionalInputs: [],
        outputs: [{ name: "y", dtype: "FP32", shape: [-1, 4] }],
      });
      expect(describeOnnxModel(identity("INT64", [])).inputs[0]!.shape).toEqual([]);
    });

    it("accepts -1 as a variable dimension", () => {
      expect(describeOnnxModel(identity("FLOAT", [-1, 4])).inputs[0]!.shape).toEqual([-1, 4]);
    });

    it("describes weights among the inputs as optional inputs", () => {
      const model = onnxModel({
        name: "add",
        opset: 17,
        inputs: [
          { name: "x", elemType: "FLOAT", dims: ["n"] },
          { name: "w", elemType: "FLOAT", dims: [1] },
        ],
        outputs: [{ name: "y", elemType: "FLOAT", dims: ["n"] }],
        nodes: [{ op: "Add", inputs: ["x", "w"], outputs: ["y"] }],
        initializers: [{ name: "w", dims: [1], data: Float32Array.of(1) }],
      });
      const { inputs, optionalInputs } = describeOnnxModel(model);
      expect(inputs.map(({ name }) => name)).toEqual(["x"]);
      expect(optionalInputs).toEqual([{ name: "w", dtype: "FP32", shape: [1] }]);
    });

    it("rejects bfloat16 inputs and outputs, and says what to do", () => {
      expect(thrownText(() => describeOnnxModel(identity("BFLOAT16", ["n"])))).toBe(
        "UNSUPPORTED cannot serve the ONNX model given as bytes: it has input 'x' of type bfloat16, which onnxruntime-node cannot pass; " +
          "cast it to float32 or float16 inside the model, or use the engine 'native'",
      );
    });

    it("rejects a file that is cut short at any byte", () => {
      const bytes = identity("FLOAT", ["batch", 4]);
      for (let length = 0; length < bytes.byteLength; length++) {
        const thrown = thrownText(() => describeOnnxModel(bytes.subarray(0, length)));
        if (!thrown.startsWith("nothing")) {
          expect(thrown).toMatch(/^INVALID_ARG cannot read the ONNX model given as bytes: /);
        }
      }
      expect(thrownText(() => describeOnnxModel(bytes.subarray(0, 20)))).toMatch(
        /^INVALID_ARG cannot read the ONNX model given as bytes: /,
      );
    });

    it("returns a description or a typed error for any bytes", () => {
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
          expect(thrownText(() => describeOnnxModel(bytes))).toMatch(/^(nothing|INVALID_ARG|UNSUPPORTED) /);
        }),
        { numRuns: 500 },
      );
    });

    it("returns a description or a typed error when any one byte is changed", () => {
      const good = identity("FLOAT", ["batch", 4]);
      const changes = fc.tuple(fc.nat({ max: good.byteLength - 1 }), fc.nat({ max: 255 }));
      fc.assert(
        fc.property(changes, ([at, value]) => {
          const bytes = Uint8Array.from(good);
          bytes[at] = value;
          expect(thrownText(() => describeOnnxModel(bytes))).toMatch(/^(nothing|INVALID_ARG|UNSUPPORTED) /);
        }),
        { numRuns: 500 },
      );
    });

    it("fails with NOT_FOUND for a missing file", () => {
      expect(thrownText(() => describeOnnxModel("/nowhere/model.onnx"))).toMatch(
        /^NOT_FOUND cannot open the ONNX model '\/nowhere\/model.onnx': there is no file '\/nowhere\/model.onnx'/,
      );
    });
  });
});
