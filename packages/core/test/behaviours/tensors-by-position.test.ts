import { batch, sample, Triton, withParameters } from "@tritonjs/core";
import { afterEach, describe, expect, it } from "vitest";

let triton: Triton;
afterEach(() => triton.close());

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
    expect(numbers(await model.infer([1, 2], [3, 4], undefined, { id: "1" }))).toEqual({ OUTPUT_1: [3, 4] });
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
