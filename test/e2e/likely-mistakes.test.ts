import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { encodeInferRequest } from "@tritonjs/client/internal";
import {
  type BindOptions,
  batch,
  sample,
  Tensor,
  Triton,
  TritonError,
  type TritonOptions,
} from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { fetchHandler, http, metrics } from "@tritonjs/http";
import { DATA_TYPES } from "@tritonjs/protocol";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";

/* The texts of errors for the mistakes that users make most often. They are written as users meet them. */

let triton: Triton;
const tritons: Triton[] = [];
const open = (options: TritonOptions = {}): Triton => {
  triton = new Triton(options);
  tritons.push(triton);
  return triton;
};
afterEach(async () => {
  await Promise.all(tritons.splice(0).map((one) => one.close()));
});

const x = [{ name: "x", dtype: "FP32", shape: [2] }] as const;
const y = [{ name: "y", dtype: "FP32", shape: [2] }] as const;
type AnyOptions = BindOptions<typeof x, typeof y>;

/** Binds options that the compiler would reject. */
const bind = (options: object) =>
  open().bind({
    modelName: "m",
    inputs: x,
    outputs: y,
    inferFunc: batch(({ x }) => ({ y: x })),
    ...options,
  } as AnyOptions);

/** The error of a call. */
async function failure(call: () => unknown): Promise<TritonError> {
  try {
    await call();
  } catch (error) {
    expect(TritonError.is(error)).toBe(true);
    return error as TritonError;
  }
  throw new Error("expected the call to fail");
}

const textOf = async (call: () => unknown) => (await failure(call)).message;

describe("a function of tensors without batch() or sample()", () => {
  const question =
    "model 'm': a plain function receives a list of requests; did you mean batch(fn) or sample(fn)?";

  type Tensors = { x: { data: Float32Array } };
  test.each<[string, string, unknown]>([
    [
      "destructures the list",
      "Cannot read properties of undefined (reading 'data')",
      ({ x }: Tensors) => ({ y: x.data }),
    ],
    [
      "reads an input of the list",
      "Cannot read properties of undefined (reading 'data')",
      (all: Tensors) => all.x.data,
    ],
    [
      "destructures it in a method",
      "Cannot read properties of undefined (reading 'data')",
      {
        async run({ x }: Tensors) {
          return x.data;
        },
      }.run,
    ],
  ])("%s", async (_what, cause, inferFunc) => {
    const error = await failure(() => bind({ inferFunc }).infer({ x: [[1, 2]] }));
    expect(error.message).toBe(`${question} It failed with: ${cause}`);
    expect(error.cause).toBeInstanceOf(TypeError);
    expect(error.stack).toContain("likely-mistakes.test.ts");
  });

  test.each<[string, unknown]>([
    ["an object", ({ x }: { x: unknown }) => ({ y: x })],
    ["undefined", () => {}],
    ["a string", () => "y"],
  ])("answers %s", async (answer, inferFunc) => {
    expect(await textOf(() => bind({ inferFunc }).infer({ x: [[1, 2]] }))).toBe(
      `${question} It answered ${answer}`,
    );
  });

  test("of a generator", async () => {
    const model = bind({
      inferFunc: function* ({ x }: Tensors) {
        yield { y: x.data };
      },
    });
    const error = await failure(async () => {
      for await (const _ of model.stream({ x: [[1, 2]] })) break;
    });
    expect(error.message).toBe(
      `${question} It failed with: Cannot read properties of undefined (reading 'data')`,
    );
  });

  test("is not what a plain function with a fault of its own is told", async () => {
    const inferFunc = (requests: { inputs: { z?: { data: unknown } } }[]) =>
      requests.map(({ inputs }) => inputs.z!.data);
    expect(await textOf(() => bind({ inferFunc }).infer({ x: [[1, 2]] }))).toBe(
      "model 'm': Cannot read properties of undefined (reading 'data')",
    );
  });
});

describe("an unknown option", () => {
  const optionsOf = (options: object) => options as never;
  test.each<[string, () => unknown, string]>([
    ["new Triton()", () => open(optionsOf({ port: 1 })), "did you mean 'httpPort'?"],
    [
      "repository()",
      () => repository(optionsOf({ modelrepository: "m" })),
      "did you mean 'modelRepository'?",
    ],
    ["serve()", () => open().serve(optionsOf({ httpPort: 0 })), "it is an option of new Triton()"],
    ["http()", () => http(optionsOf({ prot: 1 })), "did you mean 'port'?"],
    [
      "http({ limits })",
      () => http({ limits: optionsOf({ keepAliveTimeout: 1 }) }),
      "did you mean 'keepAliveTimeoutMs'?",
    ],
    [
      "metrics()",
      () => metrics(optionsOf({ host: "" })),
      "expected one of port, address, tls, logger, pages",
    ],
    [
      "grpc()",
      () => grpc(optionsOf({ max_receive_message_size: 1 })),
      "did you mean 'maxReceiveMessageSize'?",
    ],
    ["fetchHandler()", () => fetchHandler(open(), optionsOf({ prefx: "" })), "did you mean 'prefix'?"],
    [
      "requestMemory",
      () => serviceOf(open({ requestMemory: optionsOf({ bytesize: 1 }) })),
      "did you mean 'byteSize'?",
    ],
    [
      "security",
      () => serviceOf(open({ security: optionsOf({ token: "x" }) })),
      "did you mean 'accessToken'?",
    ],
  ])("of %s", async (where, call, advice) => {
    const { message, reason } = await failure(call);
    expect(message).toMatch(/^[^']+ has an unknown option '\w+': /);
    expect(message.startsWith(`${where} has`)).toBe(true);
    expect(message.slice(message.indexOf(": ") + 2)).toBe(advice);
    expect(reason).toBe("INVALID_OPTION");
  });

  test.each<[object, string]>([
    [{ infer_func: 1 }, "bind has an unknown option 'infer_func': did you mean 'inferFunc'?"],
    [{ maxBatchSize: 8 }, "bind has an unknown option 'maxBatchSize': it is an option of config"],
    [
      { config: { maxbatchsize: 8 } },
      "config has an unknown option 'maxbatchsize': did you mean 'maxBatchSize'?",
    ],
    [
      { config: { maxQueueDelayMicroseconds: 8 } },
      "config has an unknown option 'maxQueueDelayMicroseconds': it is an option of config.batcher",
    ],
  ])("of bind: %j", async (options, problem) => {
    expect(await textOf(() => bind(options))).toBe(`cannot bind model 'm':\n- ${problem}`);
  });
});

describe("an argument of another form", () => {
  const isolated = (isolation: string) => ({ config: { instanceGroup: { isolation } } });
  const anywhere = (problem: string) => `cannot bind model 'm':\n- ${problem}`;
  const metadata = () => {
    const described = bind({}).metadata();
    return { inputs: described.inputs, outputs: described.outputs };
  };
  const noDtype = (tensor: string) =>
    `${tensor} has no dtype: it has a datatype, as in metadata and requests, where the shape has the batch axis; ` +
    "expected dtype: 'FP32' and a shape without that axis";

  test.each<[string, () => unknown, string]>([
    [
      "the path of an ONNX model",
      () => onnxruntime("x.onnx" as never),
      "onnxruntime(): expected an object of options such as { model: ... }, got the string 'x.onnx'",
    ],
    [
      "an ONNX model without its path",
      () => onnxruntime({} as never),
      "onnxruntime(), option 'model': expected an object or a string, got none",
    ],
    [
      "the name and the function of bind",
      () => open().bind(...(["m", batch(() => ({}))] as unknown as [never])),
      "bind: expected an object of options such as { modelName: ... }, got the string 'm': bind takes all its options in one object",
    ],
    [
      "nothing for bind",
      () => open().bind(...([] as unknown as [never])),
      "bind: expected an object of options such as { modelName: ... }, got undefined: bind takes all its options in one object",
    ],
    [
      "a function in a worker",
      () => bind(isolated("worker")),
      anywhere(
        "config.instanceGroup.isolation: expected inline, which this model can run in, got 'worker': " +
          "a function cannot leave its thread; export it from a module, and bind the URL of the module",
      ),
    ],
    [
      "datatype for dtype",
      () => bind({ inputs: [{ name: "x", datatype: "FP32", shape: [2] }] }),
      anywhere(noDtype("inputs[0] 'x'")),
    ],
    [
      "the metadata of a model",
      () => bind(metadata()),
      anywhere(`${noDtype("inputs[0] 'x'")}\n- ${noDtype("outputs[0] 'y'")}`),
    ],
    [
      "a misspelled field of an input",
      () => bind({ inputs: [{ ...x[0], optinal: true }] }),
      anywhere("inputs[0] 'x' has an unknown option 'optinal': did you mean 'optional'?"),
    ],
    [
      "bigints for a floating-point input",
      () => bind({}).infer({ x: [[1n, 2n]] as never }),
      "input 'x' of model 'm' (FP32): expected a number, got 1n",
    ],
    [
      "a tensor of another data type",
      () => bind({}).infer({ x: Tensor.fromElements("INT32", [1, 2], Int32Array.of(1, 2)) }),
      "input 'x' of model 'm' (FP32): expected a tensor of FP32, got one of INT32",
    ],
    [
      "a tensor of another shape",
      () => bind({}).infer({ x: Tensor.fromElements("FP32", [2], Float32Array.of(1, 2)) }),
      "input 'x' of model 'm': expected shape [-1,2] with the batch axis, got [2]: use inferSample() for one sample, or add the axis",
    ],
    [
      "a tensor with half a row",
      () => bind({}).infer({ x: Tensor.fromElements("FP32", [1.5, 2], Float32Array.of(1, 2, 3)) }),
      "input 'x' of model 'm' (FP32): expected a tensor of FP32 with a shape of integers from 0, got [1.5,2]",
    ],
    [
      "an output with a row for nothing",
      () => bind({ inferFunc: batch(() => ({ y: Array(3).fill([1, 2]) })) }).infer({ x: [[1, 2]] }),
      "model 'm': Received output tensors with different batch sizes: y: (3, 2). Expected batch size: 1. ",
    ],
    [
      "the inputs of a client's metadata",
      () => encodeInferRequest({ inputs: bind({}).metadata().inputs as never }),
      "inputs: expected an object with a value for each input, got an array",
    ],
    [
      "numbers without a data type",
      () => encodeInferRequest({ inputs: { x: [1, 2] } as never }),
      "input 'x' has no datatype: expected a typed array, or { datatype, shape, data }",
    ],
  ])("%s", async (_what, call, text) => {
    expect(await textOf(call)).toBe(text);
  });

  test("a tensor of the library is a value like any other", async () => {
    const x = Tensor.fromElements("FP32", [2], Float32Array.of(1, 2));
    const model = bind({});
    expect((await model.inferSample({ x })).y.toArray()).toEqual([1, 2]);
    expect((await model.inferBatch({ x: x.reshaped([1, 2]) })).y.toArray()).toEqual([[1, 2]]);
  });
});

describe("a request without an id", () => {
  /** A model with one request in execution and one in its queue, which has room for one. */
  async function full() {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const model = bind({
      inferFunc: batch(async () => {
        await held;
        return { y: [[1, 2]] };
      }),
      config: { maxBatchSize: 1, batcher: { defaultQueuePolicy: { maxQueueSize: 1 } } },
    });
    await model.ready();
    const accepted = [1, 2, 3].map(() => model.inferSample({ x: [1, 2] }).catch(() => {}));
    return {
      model,
      async [Symbol.asyncDispose]() {
        release();
        await Promise.all(accepted);
      },
    };
  }

  test("is not given one in the errors of its process", async () => {
    await using queue = await full();
    const { model } = queue;
    expect(await failure(() => model.inferSample({ x: [1, 2] }))).toMatchObject({
      message: "Exceeds maximum queue size",
      reason: "QUEUE_FULL",
      code: "UNAVAILABLE",
    });
    expect(await textOf(() => model.stream({ x: [[1, 2]] }).next())).toBe("Exceeds maximum queue size");
    expect(await textOf(() => model.inferSample({ x: [1, 2] }, { id: "a7" }))).toBe(
      "[request id: a7] Exceeds maximum queue size",
    );
  });
});

describe("a shape", () => {
  type Call = "infer" | "inferSample" | "inferBatch";
  test.each<[Call, unknown, string]>([
    [
      "infer",
      [1, 2],
      "expected shape [-1,2] with the batch axis, got [2]: use inferSample() for one sample, or add the axis",
    ],
    [
      "inferBatch",
      [1, 2],
      "expected shape [-1,2] with the batch axis, got [2]: use inferSample() for one sample, or add the axis",
    ],
    ["infer", [[1, 2, 3]], "expected shape [-1,2] with the batch axis, got [1,3]"],
    ["inferSample", [[1, 2]], "expected shape [2] of one sample, got [1,2]: use inferBatch() for a batch"],
    ["inferSample", [1, 2, 3], "expected shape [2] of one sample, got [3]"],
    ["infer", new Float32Array(0), "expected at least one row, got shape [0,2]"],
  ])("of a model that batches, in %s(%j)", async (call, value, problem) => {
    const model = bind({});
    expect(await textOf(() => model[call]({ x: value as never }))).toBe(`input 'x' of model 'm': ${problem}`);
  });

  test.each<[Call]>([["infer"], ["inferSample"]])("of a model without a batch axis, in %s", async (call) => {
    const model = bind({ inferFunc: sample(() => ({ y: [1, 2] })) });
    expect(await textOf(() => model[call]({ x: [[1, 2]] }))).toBe(
      "input 'x' of model 'm': expected shape [2], got [1,2]: the model has no batch axis",
    );
  });

  test.each<[object, string]>([
    [{}, "model 'm': missing input 'x'"],
    [{ X: [[1, 2]] }, "model 'm' has no input 'X': did you mean 'x'?"],
    [{ x: [[1, 2]], other: [1] }, "model 'm' has no input 'other': expected 'x'"],
    [{ x: Array(5).fill([1, 2]) }, "batch of model 'm': expected at most 4 rows, got 5"],
  ])("or a name: %j", async (inputs, text) => {
    const model = bind({ config: { maxBatchSize: 4 } });
    expect(await textOf(() => model.infer(inputs as never))).toBe(text);
  });

  test("of a stream", async () => {
    const model = bind({});
    const read = async () => {
      for await (const _ of model.stream({ x: [1, 2] })) break;
    };
    expect(await textOf(read)).toBe(
      "input 'x' of model 'm': expected shape [-1,2] with the batch axis, got [2]: use inferSample() for one sample, or add the axis",
    );
  });
});

describe("a data type of another library", () => {
  const all = `The data types are ${DATA_TYPES.join(", ")}`;
  test.each([
    ["float32", "FP32"],
    ["float", "FP32"],
    ["Float32Array", "FP32"],
    ["np.float64", "FP64"],
    ["double", "FP64"],
    ["f16", "FP16"],
    ["bfloat16", "BF16"],
    ["int64", "INT64"],
    ["i32", "INT32"],
    ["uint8_t", "UINT8"],
    ["BigInt64Array", "INT64"],
    ["string", "BYTES"],
    ["TYPE_STRING", "BYTES"],
    ["TYPE_FP32", "FP32"],
    ["bool", "BOOL"],
    ["FP23", "FP32"],
  ])("%s: proposes %s", async (dtype, meant) => {
    const problem = (list: string, name: string) =>
      `- ${list}[0] '${name}' has an unknown data type '${dtype}': did you mean '${meant}'? ${all}`;
    expect(await textOf(() => bind({ inputs: [{ ...x[0], dtype }], outputs: [{ ...y[0], dtype }] }))).toBe(
      `cannot bind model 'm':\n${problem("inputs", "x")}\n${problem("outputs", "y")}`,
    );
  });

  test("that resembles none is answered with the list", async () => {
    expect(await textOf(() => bind({ inputs: [{ ...x[0], dtype: "complex" }] }))).toBe(
      `cannot bind model 'm':\n- inputs[0] 'x' has an unknown data type 'complex': ${all}`,
    );
  });
});

describe("a file that is not an ONNX model", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "tritonjs-not-onnx-"));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  const load = (model: string) =>
    textOf(() => open().bind({ modelName: "m", inferFunc: onnxruntime({ model }) }));

  test.each<[string, string | Buffer, string]>([
    ["empty", "", "it is empty"],
    ["html", "<!DOCTYPE html>\n<html>404", "it is an HTML page, probably the answer to a failed download"],
    [
      "lfs",
      "version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 12345\n",
      "it is a Git LFS pointer instead of the model: fetch the model with `git lfs pull`",
    ],
    ["text", "Not found\n", "it is a text file that begins with 'Not found'"],
    ["gzip", Buffer.of(0x1f, 0x8b, 8, 0), "it is compressed with gzip: unpack it first"],
    [
      "zip",
      Buffer.from("PK\x03\x04...."),
      "it is a ZIP archive, perhaps a PyTorch checkpoint: export the model to ONNX",
    ],
    // `ir_version`, then a graph of 100 bytes of which three are there.
    [
      "truncated",
      Buffer.of(8, 8, 0x3a, 100, 1, 2, 3),
      "it is cut off after 7 bytes: invalid length at byte 4",
    ],
  ])("but %s", async (name, content, what) => {
    const path = join(folder, `${name}.onnx`);
    await writeFile(path, content);
    expect(await load(path)).toBe(`cannot read the ONNX model '${path}': ${what}`);
  });

  test("but missing, or a directory", async () => {
    expect(await load("missing.onnx")).toBe(
      `cannot open the ONNX model 'missing.onnx': there is no file '${join(process.cwd(), "missing.onnx")}'`,
    );
    const path = join(folder, "directory.onnx");
    await mkdir(path);
    expect(await load(path)).toBe(`cannot open the ONNX model '${path}': '${path}' is a directory`);
  });
});

describe("a callback that throws", () => {
  test.each<[string, object]>([
    ["with batch()", { inferFunc: batch(() => failing()) }],
    ["as a plain function", { inferFunc: () => failing() }],
    ["with an error in its list", { inferFunc: () => [errorFor(failing)] }],
    [
      "in a worker",
      {
        inferFunc: new URL(
          "../../packages/core/test/behaviours/fixtures/throws-from-a-function.mjs",
          import.meta.url,
        ),
      },
    ],
    [
      "in a process",
      {
        inferFunc: new URL(
          "../../packages/core/test/behaviours/fixtures/throws-from-a-function.mjs",
          import.meta.url,
        ),
        config: { instanceGroup: { isolation: "process" } },
      },
    ],
  ])("%s names its model, and keeps the error and its stack", async (_how, options) => {
    const error = await failure(() => bind(options).infer({ x: [[1, 2]] }));
    expect([error.code, error.message]).toEqual(["INTERNAL", "model 'm': the index is empty"]);
    expect(error.cause).toMatchObject({ name: "RangeError", message: "the index is empty" });
    for (const { stack } of [error, error.cause as Error]) expect(stack).toMatch(/at .*failing.*\n/);
  });

  test("names the model that failed, also when another model called it", async () => {
    bind({ inferFunc: batch(() => failing()) });
    const outer = triton.bind({
      modelName: "outer",
      inputs: x,
      outputs: y,
      inferFunc: batch(async ({ x }, context) => context.infer<{ y: typeof x }>("m", { x })),
    });
    expect(await textOf(() => outer.infer({ x: [[1, 2]] }))).toBe("model 'm': the index is empty");
  });

  test("with an error of its own choice passes it on as it is", async () => {
    const own = new TritonError("NOT_FOUND", "no user 'ann'");
    const inferFunc = batch(() => {
      throw own;
    });
    expect(await failure(() => bind({ inferFunc }).infer({ x: [[1, 2]] }))).toBe(own);
  });

  test("sends neither its stack nor its cause to clients", async () => {
    bind({ inferFunc: batch(() => failing()) });
    const body = JSON.stringify({ inputs: [{ name: "x", datatype: "FP32", shape: [1, 2], data: [1, 2] }] });
    await triton.ready();
    const request = new Request("http://host/v2/models/m/infer", { method: "POST", body });
    expect(await (await fetchHandler(triton)(request)).json()).toEqual({ error: "the index is empty" });
  });
});

function failing(): never {
  throw new RangeError("the index is empty");
}

function errorFor(fn: () => never): unknown {
  try {
    return fn();
  } catch (error) {
    return error;
  }
}
