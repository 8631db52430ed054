import {
  batch,
  type DataType,
  type ModelOptions,
  sample,
  Tensor,
  Triton,
  withParameters,
} from "@tritonjs/core";
import { classify, serviceOf } from "@tritonjs/server";
import { VirtualClock } from "@tritonjs/testing";
import { afterEach, describe, expect, it, test } from "vitest";
import { EchoModel, echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { outcomeOf, thrownBy } from "../../../../test/support/outcome.js";

let triton = new Triton();

afterEach(() => triton.close());

const inferFunc = batch<typeof echoInputs, typeof echoOutputs>(({ x }) => ({ y: x }));

const specs = { modelName: "m", inputs: echoInputs, outputs: echoOutputs, inferFunc } as const;

describe("bind", () => {
  it("reports all problems in one error", () => {
    const problems = thrownBy(() =>
      new Triton().bind({
        modelName: "no spaces",
        modelVersion: 0,
        inferFunc: "text" as never,
        inputs: [
          { name: "x", dtype: "FP32", shape: [0] },
          { name: "x", dtype: "FLOAT" as "FP32", shape: [1] },
        ],
        outputs: [],
        config: { maxBatchSize: 4, batcher: { preferredBatchSize: [8] }, typo: 1 } as ModelOptions,
      }),
    ).split("\n- ");
    expect(problems).toEqual([
      "INVALID_ARG cannot bind model 'no spaces':",
      expect.stringContaining("Model name can only contain alphanumeric characters"),
      "modelVersion: expected an integer of at least 1, got 0",
      expect.stringContaining("config has an unknown option 'typo'"),
      "inferFunc: expected a function, a list of functions, a URL of a module, or a backend",
      expect.stringContaining("inputs[1] 'x' has an unknown data type 'FLOAT': did you mean 'FP32'?"),
      "model 'no spaces' must have at least one output",
      expect.stringContaining("dimension must be integer >= 1, or -1"),
      "model input 'x' is given more than once",
      "dynamic batching preferred size must be <= max batch size for no spaces",
    ]);
  });

  it.each(["", ".", "..", "a b", "a/b", "ä"])("rejects the model name %j", (modelName) => {
    expect(thrownBy(() => new Triton().bind({ ...specs, modelName }))).toContain("Model name");
  });

  it("rejects a second model of the same name and version, and accepts another version", async () => {
    await using triton = new Triton();
    triton.bind(specs);
    expect(thrownBy(() => triton.bind(specs))).toContain(
      "model 'm' version 1 is already bound: choose another name or version",
    );
    triton.bind({ ...specs, modelVersion: 2 });
    await triton.infer("m", { x: [[1]] });
    expect((await serviceOf(triton).repositoryIndex(true)).map(({ version }) => version)).toEqual(["1", "2"]);
  });

  it("fails after close", async () => {
    const triton = new Triton();
    await triton.close();
    expect(thrownBy(() => triton.bind(specs))).toBe("UNAVAILABLE cannot use this Triton: it has been closed");
  });
});

describe("a model requested by name", () => {
  it("is its highest ready version, or the requested version", async () => {
    await using triton = new Triton();
    for (const modelVersion of [1, 3]) {
      triton.bind({
        ...specs,
        modelVersion,
        inferFunc: batch(({ x }) => ({ y: x.data.map(() => modelVersion) })),
      });
    }
    const version = async (modelVersion?: number) =>
      (await triton.infer("m", { x: [[0]] }, { modelVersion })).y!.data[0];
    expect([await version(), await version(1), await version(3)]).toEqual([3, 1, 3]);
    expect(await outcomeOf(version(2))).toBe(
      "NOT_FOUND Request for unknown model: 'm' version 2 is not found",
    );
    expect(await outcomeOf(triton.infer("nope", {}))).toBe(
      "NOT_FOUND Request for unknown model: 'nope' is not found",
    );
  });
});

describe("in-process requests", () => {
  it("are validated, with errors in the words of the caller", async () => {
    await using triton = new Triton();
    const handle = triton.bind(specs);
    const options = { id: "r" };
    const wrong = (inputs: Record<string, unknown>) => outcomeOf(triton.infer("m", inputs, options));
    expect(await wrong({})).toBe("INVALID_ARG model 'm': missing input 'x'");
    expect(await wrong({ z: [[1]] })).toBe("INVALID_ARG model 'm' has no input 'z': expected 'x'");
    expect(await wrong({ x: [[1, 2]] })).toBe(
      "INVALID_ARG input 'x' of model 'm': expected shape [-1,1] with the batch axis, got [1,2]",
    );
    expect(await wrong({ x: [[1], [2], [3], [4], [5]] })).toBe(
      "INVALID_ARG batch of model 'm': expected at most 4 rows, got 5",
    );
    expect(await wrong({ x: [["1"]] })).toBe(
      "INVALID_ARG input 'x' of model 'm' (INT32): expected an integer in [-2^31, 2^31), got string",
    );
    expect(handle.statistics().inferenceStats.fail.count).toBe(0);
  });

  it("return one sample without the batch axis, even from a model without one", async () => {
    await using triton = new Triton();
    const batched = triton.bind(specs);
    const whole = triton.bind({ ...specs, modelName: "whole", config: { batching: false } });
    expect((await batched.inferSample({ x: [1] })).y.shape).toEqual([1]);
    expect((await whole.inferSample({ x: [1] })).y.shape).toEqual([1]);
    expect((await batched.infer({ x: [[1]] })).y.shape).toEqual([1, 1]);
    expect(await outcomeOf(whole.inferBatch({ x: [1] }))).toBe(
      "INVALID_ARG cannot send a batch to model 'whole', which does not support batching: use infer() or inferSample()",
    );
  });
});

describe("unbind", () => {
  it("finishes running requests, rejects new ones, and frees the name", async () => {
    const clock = new VirtualClock();
    const triton = new Triton({ clock });
    const model = new EchoModel();
    const handle = await model.bind(triton);
    model.held = true;
    const running = echo(handle, 1);
    await clock.settle();
    const waiting = echo(handle, 2);
    const unbound = handle.unbind();
    await clock.settle();
    expect(await outcomeOf(echo(handle, 3))).toBe(
      "UNAVAILABLE Server is stopping, scheduler for model has stopped accepting new " + "inference requests",
    );
    model.releaseAll();
    await unbound;
    expect([await running, await waiting]).toEqual([1, 2]);
    expect(await outcomeOf(echo(handle, 4))).toBe(
      "UNAVAILABLE model 'echo' version 1 is not ready: unloaded",
    );
    const again = await new EchoModel().bind(triton);
    const answer = echo(again, 5);
    await clock.settle();
    expect(await answer).toBe(5);
  });
});

const tensor = <D extends DataType>(dtype: D, shape: readonly number[]) =>
  ({ inputs: [{ name: "x", dtype, shape }], outputs: [{ name: "y", dtype, shape }] }) as const;

/** A worker module that never finishes loading. */
const neverLoads = new URL("data:text/javascript,await new Promise(() => setInterval(() => {}, 1000))");

describe("an in-process inference", () => {
  it("accepts a flat list of byte arrays for BYTES of any rank", async () => {
    triton = new Triton();
    const model = triton.bind({
      modelName: "bytes",
      ...tensor("BYTES", [2, -1]),
      inferFunc: batch(({ x }) => ({ y: x })),
    });
    const x = ["a", "bc", "d", "ef"].map((text) => Buffer.from(text));
    const { y } = await model.inferSample({ x });
    expect([y.shape, y.data.map((bytes) => Buffer.from(bytes).toString())]).toEqual([
      [2, 2],
      ["a", "bc", "d", "ef"],
    ]);
  });

  it.each([
    ["a symbol", Symbol("1"), "symbol"],
    ["a text", "5", "string"],
    ["a list", ["-1"], "object"],
    ["null", null, "null"],
    ["not a number", Number.NaN, "NaN"],
  ])("rejects a time limit that is %s", async (_, timeoutMs, got) => {
    triton = new Triton();
    const model = triton.bind({
      modelName: "m",
      ...tensor("FP32", [1]),
      inferFunc: batch(({ x }) => ({ y: x })),
    });
    await expect(model.inferSample({ x: [1] }, { timeoutMs: timeoutMs as never })).rejects.toMatchObject({
      code: "INVALID_ARG",
      message: `timeoutMs: expected a number of milliseconds, got ${got}`,
    });
  });

  it("rejects parameters that are not plain values before any other step", async () => {
    triton = new Triton();
    const model = triton.bind({
      modelName: "m",
      ...tensor("FP32", [1]),
      inferFunc: batch(({ x }) => ({ y: x })),
    });
    const parameters = { f: () => {} } as never;
    await expect(model.inferSample({ x: [1] }, { parameters })).rejects.toMatchObject({
      code: "INVALID_ARG",
      message: expect.stringContaining("parameter 'f'"),
    });
  });

  it("can be cancelled while the model loads", async () => {
    triton = new Triton({ exitTimeoutSecs: 0 });
    const model = triton.bind({ modelName: "m", ...tensor("FP32", [1]), inferFunc: neverLoads });
    const controller = new AbortController();
    const aborted = model.inferSample({ x: [1] }, { signal: controller.signal });
    const expired = model.inferSample({ x: [1] }, { timeoutMs: 0.001 });
    await expect(expired).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: "Request timeout expired",
    });
    controller.abort();
    await expect(aborted).rejects.toMatchObject({ code: "CANCELLED" });
  });

  it("streams the values that its arrays had at the call", async () => {
    triton = new Triton();
    const model = triton.bind({
      modelName: "m",
      ...tensor("FP32", [1]),
      inferFunc: batch(function* ({ x }) {
        yield { y: x };
      }),
    });
    const x = Float32Array.of(1);
    const stream = model.stream({ x });
    x[0] = 2;
    const seen: number[] = [];
    for await (const { y } of stream) seen.push(y.get(0, 0));
    expect(seen).toEqual([1]);
  });
});

describe("bind", () => {
  it("names each specification that is malformed", () => {
    triton = new Triton();
    const inputs = [
      { name: "x", dtype: "FP32" },
      { dtype: "FP32", shape: [1] },
    ] as never;
    expect(() => triton.bind({ modelName: "m", inputs, inferFunc: batch(() => ({})) })).toThrow(
      /inputs\[0\] 'x' has no shape: expected a list of dimensions\n.*inputs\[1\] has no name/,
    );
  });
});

describe("close", () => {
  it("does not wait for a model that never finishes loading", async () => {
    triton = new Triton({ exitTimeoutSecs: 0 });
    const model = triton.bind({ modelName: "m", ...tensor("FP32", [1]), inferFunc: neverLoads });
    await triton.close();
    await expect(model.ready()).rejects.toMatchObject({ code: "INTERNAL" });
  });
});

const row = { dtype: "FP32", shape: [2] } as const;

function addSub() {
  triton = new Triton();
  return triton.bind({
    modelName: "add_sub",
    inputs: [row, row],
    outputs: [row, row],
    inferFunc: batch(({ INPUT_1, INPUT_2 }) => {
      const pairs = [...INPUT_1.data].map((a, i) => [a, INPUT_2.data[i]!] as const);
      const [sums, differences] = [pairs.map(([a, b]) => a + b), pairs.map(([a, b]) => a - b)];
      return [Float32Array.from(sums), Float32Array.from(differences)];
    }),
    config: { maxBatchSize: 4 },
  });
}

const numbers = (outputs: { readonly [name: string]: { readonly data: ArrayLike<number> } }) =>
  Object.fromEntries(Object.entries(outputs).map(([name, { data }]) => [name, Array.from(data)]));

describe("a model whose tensors have no names", () => {
  it("gives them the names of their positions", async () => {
    const model = addSub();
    expect(model.metadata()).toMatchObject({
      inputs: [{ name: "INPUT_1" }, { name: "INPUT_2" }],
      outputs: [{ name: "OUTPUT_1" }, { name: "OUTPUT_2" }],
    });
    const outputs = await model.inferSample({ INPUT_2: [1, 1], INPUT_1: [5, 6] });
    expect(numbers(outputs)).toEqual({ OUTPUT_1: [6, 7], OUTPUT_2: [4, 5] });
  });

  it.each(["infer", "inferBatch"] as const)("takes them by position in %s", async (method) => {
    const outputs = await addSub()[method]([[5, 6]], Float32Array.of(1, 1), { id: "1" });
    expect(outputs.OUTPUT_2.shape).toEqual([1, 2]);
    expect(numbers(outputs)).toEqual({ OUTPUT_1: [6, 7], OUTPUT_2: [4, 5] });
  });

  it("takes them by position in inferSample and stream", async () => {
    const model = addSub();
    const outputs = await model.inferSample([5, 6], [1, 1]);
    expect(outputs.OUTPUT_1.shape).toEqual([2]);
    const streamed = [];
    for await (const part of model.stream([[5, 6]], [[1, 1]])) streamed.push(numbers(part));
    expect(streamed).toEqual([{ OUTPUT_1: [6, 7], OUTPUT_2: [4, 5] }]);
  });

  it("may have named inputs and unnamed outputs", async () => {
    triton = new Triton();
    const model = triton.bind({
      modelName: "m",
      inputs: [{ name: "x", ...row }],
      outputs: [row],
      inferFunc: sample(({ x }) => [x]),
    });
    expect(numbers(await model.infer([1, 2]))).toEqual({ OUTPUT_1: [1, 2] });
  });
});

describe("a list of outputs", () => {
  it("is taken from a plain callback and from a list of functions", async () => {
    triton = new Triton();
    const specs = { inputs: [row], outputs: [row, row], config: { batching: false } } as const;
    const plain = triton.bind({
      modelName: "plain",
      ...specs,
      inferFunc: (requests) => requests.map(({ inputs }) => [inputs.INPUT_1, inputs.INPUT_1]),
    });
    const functions = triton.bind({
      modelName: "functions",
      ...specs,
      inferFunc: [sample(({ INPUT_1 }) => [INPUT_1, INPUT_1]), sample(({ INPUT_1 }) => [INPUT_1, INPUT_1])],
    });
    for (const model of [plain, functions]) {
      expect(numbers(await model.infer([1, 2]))).toEqual({ OUTPUT_1: [1, 2], OUTPUT_2: [1, 2] });
    }
  });

  it("is taken from a sender and a generator, with parameters", async () => {
    triton = new Triton();
    const specs = { inputs: [row], outputs: [row] } as const;
    const config = { batching: false, decoupled: true };
    const sender = triton.bind({
      modelName: "sender",
      ...specs,
      config,
      inferFunc: (requests) => {
        for (const { inputs, responseSender } of requests) {
          void responseSender.send([inputs.INPUT_1.data], { final: true });
        }
      },
    });
    const generator = triton.bind({
      modelName: "generator",
      ...specs,
      config,
      inferFunc: sample(function* ({ INPUT_1 }) {
        yield withParameters([INPUT_1], { part: 1 });
        yield [INPUT_1];
      }),
    });
    const count = async (model: typeof sender | typeof generator) => {
      let parts = 0;
      for await (const { OUTPUT_1 } of model.stream([3, 4])) {
        expect([...OUTPUT_1.data]).toEqual([3, 4]);
        parts++;
      }
      return parts;
    };
    expect([await count(sender), await count(generator)]).toEqual([1, 2]);
  });

  it("of another length than the outputs is an error of the request", async () => {
    triton = new Triton();
    const model = triton.bind({
      modelName: "m",
      inputs: [row],
      outputs: [row, row],
      inferFunc: (requests) => requests.map(({ inputs }) => [inputs.INPUT_1]),
    });
    await expect(model.inferSample([1, 2])).rejects.toMatchObject({
      code: "INTERNAL",
      message:
        "model 'm': Outputs length different than config outputs length: expected 2 ('OUTPUT_1', 'OUTPUT_2'), got 1",
    });
  });
});

describe("bind", () => {
  it("refuses names for some tensors and not for others, naming the model and the tensor", () => {
    triton = new Triton();
    const inputs = [{ name: "x", ...row }, row] as never;
    const outputs = [row, { name: "y", ...row }] as never;
    expect(() => triton.bind({ modelName: "m", inputs, outputs, inferFunc: batch(() => ({})) })).toThrow(
      "cannot bind model 'm':\n" +
        "- inputs[1] has no name, but inputs[0] is 'x': name all of them or none\n" +
        "- outputs[0] has no name, but outputs[1] is 'y': name all of them or none",
    );
  });
});

describe("a call by position", () => {
  const faults: readonly (readonly [string, readonly unknown[], string])[] = [
    ["too few tensors", [[1, 2]], "expected 2 tensors by position ('INPUT_1', 'INPUT_2'), got 1"],
    [
      "too few tensors before options",
      [[1, 2], { id: "1" }],
      "expected 2 tensors by position ('INPUT_1', 'INPUT_2'), got 1",
    ],
    [
      "too many tensors",
      [
        [1, 2],
        [1, 2],
        [1, 2],
      ],
      "expected 2 tensors by position ('INPUT_1', 'INPUT_2'), got 3",
    ],
    ["a gap", [undefined, [1, 2]], "missing input 'INPUT_1'"],
    [
      "one tensor by position and one by name",
      [[1, 2], { INPUT_2: [1, 2] }],
      "expected all tensors by name or all by position, got 'INPUT_2' after tensors by position",
    ],
    [
      "tensors by name, then others",
      [{ INPUT_1: [1, 2] }, [1, 2]],
      "expected all tensors by name or all by position, got an array after tensors by name",
    ],
  ];
  it.each(faults)("with %s is refused", async (_name, call, text) => {
    const model = addSub();
    const infer = model.inferSample as (...given: readonly unknown[]) => Promise<unknown>;
    await expect(infer(...call)).rejects.toMatchObject({
      code: "INVALID_ARG",
      message: `model 'add_sub': ${text}`,
    });
  });

  it("leaves out optional inputs", async () => {
    triton = new Triton();
    const model = triton.bind({
      modelName: "m",
      inputs: [
        { name: "x", ...row },
        { name: "bias", ...row, optional: true },
        { name: "scale", ...row, optional: true },
      ],
      outputs: [row],
      inferFunc: sample(({ x, bias, scale }) => [scale ?? bias ?? x]),
    });
    expect(numbers(await model.infer([1, 2]))).toEqual({ OUTPUT_1: [1, 2] });
    expect(numbers(await model.infer([1, 2], [3, 4], undefined, { id: "1" }))).toEqual({
      OUTPUT_1: [3, 4],
    });
    expect(numbers(await model.infer([1, 2], undefined, [5, 6]))).toEqual({ OUTPUT_1: [5, 6] });
    const tooMany = model.infer as (...given: readonly unknown[]) => Promise<unknown>;
    await expect(tooMany([1, 2], [1, 2], [1, 2], [1, 2])).rejects.toThrow(
      "model 'm': expected 1 to 3 tensors by position ('x', 'bias', 'scale'), got 4",
    );
  });

  it("names the input of a value that does not fit", async () => {
    await expect(addSub().inferSample([1, 2], [1, 2, 3])).rejects.toThrow(
      "input 'INPUT_2' of model 'add_sub': expected shape [2] of one sample, got [3]",
    );
  });
});

function classes(tensor: Tensor, count: number, batched = false, labels?: readonly string[]) {
  const result = classify(tensor, count, batched, labels);
  expect(result.datatype).toBe("BYTES");
  return {
    shape: result.shape,
    texts: (result.elements as Uint8Array[]).map((text) => Buffer.from(text).toString()),
  };
}

describe("classification", () => {
  const scores = Tensor.fromElements("FP32", [4], Float32Array.of(0.25, 3.5, -1, 2));

  test("returns the largest elements, largest first", () => {
    expect(classes(scores, 2)).toEqual({ shape: [2], texts: ["3.500000:1", "2.000000:3"] });
  });

  test("returns no more classes than there are elements", () => {
    expect(classes(scores, 10).shape).toEqual([4]);
  });

  test("adds nothing for an empty label", () => {
    expect(classes(scores, 2, false, ["cat", "", "", "cow"]).texts).toEqual(["3.500000:1", "2.000000:3:cow"]);
  });

  test("adds labels as far as they exist", () => {
    expect(classes(scores, 3, false, ["cat", "dog"]).texts).toEqual([
      "3.500000:1:dog",
      "2.000000:3",
      "0.250000:0:cat",
    ]);
  });

  test("works row by row along a batch axis", () => {
    const batch = Tensor.fromElements("INT32", [2, 2], Int32Array.of(1, 2, 4, 3));
    expect(classes(batch, 1, true)).toEqual({ shape: [2, 1], texts: ["2:1", "4:0"] });
    expect(classes(batch, 1, false)).toEqual({ shape: [1], texts: ["4:2"] });
  });

  test("prints integers plainly, the widest exactly", () => {
    const wide = Tensor.fromElements("UINT64", [2], BigUint64Array.of(1n, 2n ** 64n - 1n));
    expect(classes(wide, 2).texts).toEqual(["18446744073709551615:1", "1:0"]);
  });

  test("keeps the order of equal elements and puts NaN last", () => {
    const ties = Tensor.fromElements(
      "FP64",
      [4],
      Float64Array.of(Number.NaN, 1, Number.POSITIVE_INFINITY, 1),
    );
    expect(classes(ties, 4).texts).toEqual(["inf:2", "1.000000:1", "1.000000:3", "nan:0"]);
  });

  test("is empty for an empty tensor", () => {
    const empty = Tensor.fromElements("FP32", [0], new Float32Array(0));
    expect(classes(empty, 3)).toEqual({ shape: [0], texts: [] });
  });

  test.each(["BOOL", "FP16", "BF16", "BYTES"] as const)("rejects %s", (datatype) => {
    const tensor = Tensor.fromBytes(datatype, [1], new Uint8Array(4));
    expect(() => classify(tensor, 1, false, undefined)).toThrow(
      `class result not available for output due to unsupported type '${datatype}'`,
    );
  });

  test("rejects more than a million elements", () => {
    const tensor = Tensor.fromElements("INT8", [1_000_001], new Int8Array(1_000_001));
    expect(() => classify(tensor, 1, false, undefined)).toThrow("classification output tensor too large");
  });
});

describe("the printed value of a class", () => {
  // As printf("%f") prints them.
  test.each([
    [0, "0.000000"],
    [-0, "-0.000000"],
    [-1e-9, "-0.000000"],
    [0.0078125, "0.007812"],
    [0.0234375, "0.023438"],
    [-0.0078125, "-0.007812"],
    [0.1234565, "0.123456"],
    [1.0000005, "1.000001"],
    [1e21, "1000000000000000000000.000000"],
    [2 ** 100, "1267650600228229401496703205376.000000"],
    [Number.NaN, "nan"],
    [Number.NEGATIVE_INFINITY, "-inf"],
  ])("%d is printed as %s", (value, text) => {
    const scores = Tensor.fromElements("FP64", [1], Float64Array.of(value));
    expect(classes(scores, 1).texts).toEqual([`${text}:0`]);
  });
});
