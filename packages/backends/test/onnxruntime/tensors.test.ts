import { type OnnxRuntimeOptions, onnxruntime } from "@tritonjs/backends/onnxruntime";
import { batch, type ModelConfig, type TensorSpec, Triton, TritonError } from "@tritonjs/core";
import type { SequenceStateOption } from "@tritonjs/core/types";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { VirtualClock, withSchedulerDelay } from "@tritonjs/testing";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { onnxModel } from "../../../../examples/onnx-writer/onnx-writer.js";
import { parseConfigText } from "../../../../test/golden/support/config-text.js";
import { loadLines } from "../../../../test/golden/support/load-cases.js";
import type { Scenario } from "../../../../test/golden/support/scheduler/scenario.js";
import { identityOnnx } from "../../../../test/support/onnx-models.js";
import { outcomeOf, thrownBy } from "../../../../test/support/outcome.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

describe("inputs that hold shapes", () => {
  const y = { name: "y", dtype: "FP32", shape: [1] } as const;

  let triton: Triton;

  beforeEach(() => {
    triton = withSchedulerDelay({ requests: 3 }, () => new Triton());
  });

  afterEach(() => triton.close());

  describe("shape tensors", () => {
    const size = { name: "size", dtype: "INT32", shape: [2], isShapeTensor: true } as const;
    const row = { name: "x", dtype: "FP32", shape: [1] } as const;

    it("are passed once for the batch, without a batch axis", async () => {
      const seen: unknown[] = [];
      const handle = triton.bind({
        modelName: "shaped",
        inputs: [row, size],
        outputs: [y, { ...size, name: "like" }],
        inferFunc: batch((inputs) => {
          seen.push([[...inputs.x.data], inputs.size.shape, [...inputs.size.data]]);
          return { y: inputs.x, like: inputs.size };
        }),
      });
      const answers = await Promise.all(
        [1, 2, 3].map((value) => handle.inferSample({ x: [value], size: [4, value < 3 ? 5 : 6] })),
      );
      expect(seen).toEqual([
        [[1, 2], [2], [4, 5]],
        [[3], [2], [4, 6]],
      ]);
      expect(answers.map(({ like }) => [like.shape, [...like.data]])).toEqual([
        [[2], [4, 5]],
        [[2], [4, 5]],
        [[2], [4, 6]],
      ]);
    });

    it("are rejected with another shape", async () => {
      const handle = triton.bind({
        modelName: "shaped",
        inputs: [row, size],
        outputs: [y],
        inferFunc: batch((inputs) => ({ y: inputs.x })),
      });
      expect(await outcomeOf(handle.inferBatch({ x: [[1]], size: [[1, 2]] }))).toContain(
        "input 'size' of model 'shaped': expected shape [2], got [1,2]",
      );
    });
  });
});

const x = { name: "x", dtype: "FP32", shape: [-1] } as const;

const y = { name: "y", dtype: "FP32", shape: [-1] } as const;

const mask = {
  name: "mask",
  dtype: "FP32",
  shape: [-1],
  batchInput: { kind: "PADDING_MASK", sourceInput: "x" },
} as const;

const length = {
  name: "length",
  dtype: "INT32",
  shape: [1],
  batchInput: { kind: "BATCH_ITEM_SHAPE", sourceInput: "x" },
} as const;

const cut = { ...y, batchOutput: { kind: "CUT_TO_INPUT_SHAPE", sourceInput: "x" } } as const;

describe("padded inputs", () => {
  it("joins requests of different lengths in one batch, with a mask and the true lengths", async () => {
    const clock = new VirtualClock();
    const seen: unknown[] = [];
    const handle = new Triton({ clock }).bind({
      modelName: "padded",
      inputs: [x, mask, length],
      outputs: [cut],
      inferFunc: batch((inputs) => {
        seen.push(inputs.x.shape, [...inputs.x.data], [...inputs.mask.data], [...inputs.length.data]);
        return { y: inputs.x.data.map((value) => 2 * value) };
      }),
      config: { batcher: { pad: { x: 9 } } },
    });
    await handle.ready();
    const answers = [[1], [2, 3, 4]].map((values) => handle.inferSample({ x: values }));
    await clock.settle();
    expect(seen).toEqual([
      [2, 3],
      [1, 9, 9, 2, 3, 4],
      [1, 0, 0, 1, 1, 1],
      [1, 3],
    ]);
    expect((await Promise.all(answers)).map(({ y: mine }) => [...mine.data])).toEqual([[2], [4, 6, 8]]);
  });

  it("works for a module in a worker", async () => {
    const triton = withSchedulerDelay({ requests: 2 }, () => new Triton());
    const handle = triton.bind({
      modelName: "mean",
      inputs: [x, mask],
      outputs: [
        { name: "mean", dtype: "FP32", shape: [1] },
        { ...cut, name: "doubled" },
      ],
      inferFunc: new URL("../../../core/test/behaviours/fixtures/masked-mean.mjs", import.meta.url),
      config: { batcher: { pad: { x: 100 } } },
    });
    await handle.ready();
    const answers = await Promise.all(
      [
        [1, 3],
        [2, 4, 6, 8],
      ].map((values) => handle.inferSample({ x: values })),
    );
    expect(answers.map(({ mean, doubled }) => [mean.data[0], [...doubled.data]])).toEqual([
      [2, [2, 6]],
      [5, [4, 8, 12, 16]],
    ]);
    expect(handle.statistics().executionCount).toBe(1);
    await triton.close();
  });

  it("works for a model file", async () => {
    const triton = withSchedulerDelay({ requests: 2 }, () => new Triton());
    const handle = triton.bind({
      modelName: "identity",
      inferFunc: onnxruntime({ model: identityOnnx("FLOAT", ["batch", "length"]) }),
      inputs: [x],
      outputs: [cut],
      config: { batcher: { pad: { x: 0 } } },
    });
    await handle.ready();
    const answers = await Promise.all([[1], [2, 3, 4]].map((values) => handle.inferSample({ x: values })));
    expect(answers.map((answer) => [...answer.y.data])).toEqual([[1], [2, 3, 4]]);
    expect(handle.statistics().executionCount).toBe(1);
    await triton.close();
  });

  /** Answers of a model of a repository to two requests, or the reason why it is not loaded. */
  const inRepository = async (config: string) => {
    await using files = await RepositoryOnDisk.create({
      "identity/config.pbtxt": `backend: "onnxruntime"\nmax_batch_size: 8\ninstance_group [ { count: 1 } ]\n${config}\n`,
      "identity/1/model.onnx": identityOnnx("FLOAT", ["batch", "length"]),
    });
    const logger = { error() {}, warn() {}, info() {}, debug() {} };
    await using triton = withSchedulerDelay(
      { requests: 2 },
      () =>
        new Triton({ logger, extensions: [repository({ modelRepository: files.path, exitOnError: false })] }),
    );
    await triton.ready().catch(() => {});
    const [row] = await serviceOf(triton).repositoryIndex(false);
    if (row!.state !== "READY") return row!.reason;
    const values = [[[1]], [[2, 3, 4]]];
    const answers = await Promise.all(values.map((given) => triton.infer("identity", { x: given })));
    const { executionCount } = serviceOf(triton).statistics("identity", "")[0]!;
    return [Number(executionCount), ...answers.map((answer) => [...(answer.y!.data as Float32Array)])];
  };
  const pads = (text: string) => `parameters { key: "pad_inputs" value { string_value: "${text}" } }`;

  it("is set in a repository by the parameter pad_inputs", async () => {
    expect(await inRepository(`dynamic_batching { }\n${pads("x=9")}`)).toEqual([1, [1, 9, 9], [2, 3, 4]]);
  });

  it("of a repository is refused by name for an input that it cannot fill up", async () => {
    const option = "parameter 'pad_inputs' of model 'identity'";
    expect(await inRepository(`sequence_batching { }\n${pads("x=9")}`)).toContain(
      `${option} has no effect without dynamic_batching`,
    );
    expect(await inRepository(`dynamic_batching { }\n${pads("z=9")}`)).toContain(
      `${option} names input 'z', which the model does not have`,
    );
    expect(await inRepository(`dynamic_batching { }\n${pads("nine")}`)).toContain(`${option} names input ''`);
  });
});

describe("contradicting padding options", () => {
  const bind = (batcher: object, inputs: readonly object[] = [x], outputs: readonly object[] = [y]) =>
    thrownBy(() =>
      new Triton().bind({
        modelName: "bad",
        inputs: inputs as never,
        outputs: outputs as never,
        inferFunc: batch(() => ({ y: [] })) as never,
        config: { batcher },
      }),
    );

  it.each([
    [{ batchBy: "length" }, "config.batcher.batchBy: expected a function, got string"],
    [
      { cost: (): number => 1 },
      "config.batcher.cost has no effect without config.batcher.maxBatchCost: give both",
    ],
    [{ maxBatchCost: 5 }, "config.batcher.maxBatchCost has no effect without config.batcher.cost: give both"],
    [
      { cost: (): number => 1, maxBatchCost: 0 },
      "config.batcher.maxBatchCost: expected a number above 0, got 0",
    ],
    [{ pad: { z: 0 } }, "config.batcher.pad names input 'z', which the model does not have"],
    [{ pad: { x: "a" } }, "config.batcher.pad of input 'x'"],
    [{ pad: 5 }, "config.batcher.pad: expected values by input name, or a function, got number"],
  ])("are rejected: %o", (batcher, text) => {
    expect(bind(batcher)).toContain(text);
  });

  it("are rejected when there is no dimension to pad", () => {
    const fixed = { ...x, shape: [2] };
    expect(bind({ pad: { x: 0 } }, [fixed])).toContain("'x', which has no variable dimension");
    expect(bind({ pad: { x: 0 } }, [{ ...x, allowRaggedBatch: true }])).toContain(
      "'x', which is ragged or a shape tensor",
    );
    expect(bind({}, [x, mask])).toContain("'mask' follows the padding of input 'x', which is not padded");
    expect(bind({}, [x], [cut])).toContain("'y' follows the padding of input 'x', which is not padded");
  });
});

describe("the requested outputs", () => {
  const triton = new Triton();

  afterAll(() => triton.close());

  const value = (name: string) => ({ name, elemType: "FLOAT", dims: ["batch", 1] }) as const;

  /** `twice` = x + x, `square` = x * x, and `total` and the state `present` = past + x. */
  const model = onnxModel({
    name: "several",
    opset: 17,
    inputs: [value("x"), value("past")],
    outputs: [value("twice"), value("square"), value("total"), value("present")],
    nodes: [
      { op: "Add", inputs: ["x", "x"], outputs: ["twice"] },
      { op: "Mul", inputs: ["x", "x"], outputs: ["square"] },
      { op: "Add", inputs: ["past", "x"], outputs: ["present"] },
      { op: "Identity", inputs: ["present"], outputs: ["total"] },
    ],
  });

  const numbers = (outputs: Readonly<Record<string, { readonly data: unknown }>>) =>
    Object.fromEntries(
      Object.entries(outputs).map(([name, { data }]) => [name, [...(data as Float32Array)]]),
    );

  describe.each(["worker", "native"] as const)("a batch of the engine '%s'", (engine) => {
    const inferFunc = onnxruntime({ model, engine } as OnnxRuntimeOptions);

    it("has the outputs that its requests ask for, together", async () => {
      const handle = triton.bind({
        modelName: `several-${engine}`,
        inferFunc,
        config: {
          maxBatchSize: 3,
          batcher: { preferredBatchSize: [3], maxQueueDelayMicroseconds: 60_000_000 },
        },
      });
      const ask = (x: number, ...requestedOutputs: string[]) => {
        // The steps of ensembles and the protocols ask like this.
        const options = { priority: 0, requestedOutputs };
        return handle.infer({ x: [[x]], past: [[10]] }, options).then(numbers);
      };
      // Each line is a batch.
      const few = await Promise.all([ask(1, "twice"), ask(2, "square"), ask(3, "square", "twice")]);
      expect(few).toEqual([{ twice: [2] }, { square: [4] }, { twice: [6], square: [9] }]);
      const all = await Promise.all([ask(1, "twice"), ask(2), ask(3, "total")]);
      expect(all).toEqual([
        { twice: [2] },
        { twice: [4], square: [4], total: [12], present: [12] },
        { total: [13] },
      ]);
      const others = await Promise.all([ask(1, "total"), ask(2, "total"), ask(3, "total")]);
      expect(others).toEqual([{ total: [11] }, { total: [12] }, { total: [13] }]);
      expect(handle.statistics()).toMatchObject({ inferenceCount: 9, executionCount: 3 });
    });

    it("does not take outputs that no request asks for", async () => {
      // The file declares a shape for `wrong` that the values do not have, which only an output that is taken shows.
      const wrong = onnxModel({
        name: "wrong",
        opset: 17,
        inputs: [value("x")],
        outputs: [value("twice"), value("wrong")],
        nodes: [
          { op: "Add", inputs: ["x", "x"], outputs: ["twice"] },
          { op: "Concat", inputs: ["x", "x", "x"], outputs: ["three"], attributes: { axis: { int: 1 } } },
          { op: "Reshape", inputs: ["three", "shape"], outputs: ["wrong"] },
        ],
        initializers: [{ name: "shape", dims: [2], data: new BigInt64Array([-1n, 3n]) }],
      });
      const handle = triton.bind({
        modelName: `wrong-${engine}`,
        inferFunc: onnxruntime({ model: wrong, engine } as OnnxRuntimeOptions),
        config: { maxBatchSize: 8 },
      });
      const ask = (...requestedOutputs: string[]) => {
        const options = { priority: 0, requestedOutputs };
        return handle.infer({ x: [[2]] }, options);
      };
      expect(numbers(await ask("twice"))).toEqual({ twice: [4] });
      await expect(ask("twice", "wrong")).rejects.toThrow("expected shape [-1,1], got [1,3]");
      expect(numbers(await ask("twice"))).toEqual({ twice: [4] });
    });

    it("keeps the states of sequences that ask for other outputs", async () => {
      const states = [{ input: "past", output: "present", dtype: "FP32", shape: [1] }] as const;
      const handle = triton.bind({ modelName: `sum-${engine}`, inferFunc, config: { sequence: { states } } });
      const ask = (x: number, name: string, start = false) => {
        const options = { requestedOutputs: [name], sequence: { id: 1, start } };
        return handle.infer({ x: [[x]] }, options).then(numbers);
      };
      expect(await ask(1, "twice", true)).toEqual({ twice: [2] });
      expect(await ask(2, "square")).toEqual({ square: [4] });
      expect(await ask(3, "total")).toEqual({ total: [6] });
    });
  });
});

describe("ragged inputs", () => {
  const x = { name: "x", dtype: "FP32", shape: [-1], allowRaggedBatch: true } as const;

  const y = { name: "y", dtype: "FP32", shape: [1] } as const;

  let triton: Triton;

  beforeEach(() => {
    triton = withSchedulerDelay({ requests: 3 }, () => new Triton());
  });

  afterEach(() => triton.close());

  describe.each(
    loadLines<Scenario & { readonly files: Record<string, string> }>("scheduler/scenarios.jsonl")
      .filter(({ id }) => /^rg_(count|item_shape|scatter|max4)$/.test(id))
      .map((scenario) => [scenario.id, scenario] as const),
  )("an ONNX model with ragged inputs, %s", (_, scenario) => {
    it("answers as it does in Triton", async () => {
      const modelConfig = parseConfigText(scenario.config_pbtxt, scenario.id) as Partial<ModelConfig>;
      const requests = scenario.actions as unknown as { in: { X: { shape: number[]; data: number[] } } }[];
      const server = withSchedulerDelay({ requests: requests.length }, () => new Triton());
      const handle = server.bind({
        modelName: scenario.id,
        inferFunc: onnxruntime({ model: Buffer.from(scenario.files["1/model.onnx"]!, "hex") }),
        modelConfig,
      });
      await handle.ready();
      const answers = await Promise.all(
        requests.map(({ in: { X } }) => server.infer(scenario.id, { X: [X.data] })),
      );
      const expected = scenario.outcome.responses as unknown as {
        outputs: Record<string, { shape: number[]; data: number[] }>;
      }[];
      const outputs = answers.map((answer) =>
        Object.fromEntries(
          Object.entries(answer).map(([name, { shape, data }]) => [
            name,
            { datatype: "FP32", shape, data: [...(data as Float32Array)] },
          ]),
        ),
      );
      expect(outputs).toMatchObject(expected.map((response) => response.outputs));
      expect(handle.statistics()).toMatchObject({
        inferenceCount: requests.length,
        executionCount: (scenario.outcome.statistics as { execution_count: number }).execution_count,
      });
      await server.close();
    });
  });

  describe("a model file with a ragged input", () => {
    const scenario = loadLines<Scenario & { readonly files: Record<string, string> }>(
      "scheduler/scenarios.jsonl",
    ).find(({ id }) => id === "rg_count")!;
    const inferFunc = onnxruntime({ model: Buffer.from(scenario.files["1/model.onnx"]!, "hex") });
    const C: TensorSpec = {
      name: "C",
      dtype: "FP32",
      shape: [1],
      batchInput: { kind: "BATCH_ELEMENT_COUNT", sourceInput: "X" },
    };

    it("can be described by typed options", async () => {
      const handle = triton.bind({
        modelName: "count",
        inferFunc,
        inputs: [{ ...x, name: "X" }, C],
        outputs: [{ ...y, name: "OUT" }],
      });
      await handle.ready();
      const answers = await Promise.all(
        [[1, 2], [3, 4, 5], [6]].map((values) => handle.inferSample({ X: values })),
      );
      expect(answers.map(({ OUT }) => OUT?.data[0])).toEqual([2, 3, 1]);
    });

    it("is rejected when file and configuration do not match", () => {
      const text = thrownBy(() =>
        triton.bind({
          modelName: "count",
          inferFunc,
          inputs: [
            { ...x, name: "X", optional: true },
            { ...C, name: "D" },
          ],
          outputs: [{ ...y, name: "OUT" }],
        }),
      );
      expect(text).toContain(
        "configuration expects model provides input with shape [-1] for ragged input 'X', which is not supported for optional input",
      );
      expect(text).toContain("input 'D' is not in the model file: expected one of 'X', 'C'");
      expect(text).toContain("input 'C' of the model file is missing: add it to inputs");
    });
  });
});

describe("the implicit state of sequences", () => {
  let triton: Triton;

  afterEach(() => triton.close());

  const dims = ["batch", 1];

  const adder = onnxModel({
    name: "adder",
    opset: 13,
    inputs: ["x", "past", "start"].map((name) => ({ name, elemType: "FLOAT", dims })),
    outputs: ["sum", "present"].map((name) => ({ name, elemType: "FLOAT", dims })),
    nodes: [
      { op: "Add", inputs: ["x", "past"], outputs: ["between"] },
      { op: "Add", inputs: ["between", "start"], outputs: ["present"] },
      { op: "Identity", inputs: ["present"], outputs: ["sum"] },
    ],
  });

  function bindAdder(state: SequenceStateOption) {
    triton = new Triton();
    return triton.bind({
      modelName: "adder",
      inferFunc: onnxruntime({ model: adder }),
      config: {
        sequence: {
          strategy: "direct",
          controls: { start: { name: "start", dtype: "FP32" } },
          states: [state],
        },
      },
    });
  }

  describe("implicit state", () => {
    it("stays between batcher and model for an ONNX model, as control inputs do", async () => {
      const handle = bindAdder({
        input: "past",
        output: "present",
        dtype: "FP32",
        shape: [1],
        initial: [10],
      });
      expect(handle.metadata().inputs.map(({ name }) => name)).toEqual(["x"]);
      expect(handle.metadata().outputs.map(({ name }) => name)).toEqual(["sum"]);
      const add = async (x: number, sequenceId: number, flags = {}) =>
        (await handle.inferSample({ x: [x] }, { sequence: { id: sequenceId, ...flags } })).sum!.get(0);
      expect(await add(1, 1, { start: true })).toBe(12);
      expect(await add(1, 2, { start: true })).toBe(12);
      expect(await add(5, 1)).toBe(17);
      expect(await add(5, 1, { start: true })).toBe(16);
    });

    it("is reported at bind when the ONNX model lacks it, all at once", () => {
      const bind = () => bindAdder({ input: "before", output: "after", dtype: "FP32", shape: [1] });
      expect(bind).toThrow(TritonError);
      expect(bind).toThrow(
        "state input 'before' is not in the model file: expected one of 'x', 'past', 'start'",
      );
      expect(bind).toThrow("state output 'after' is not in the model file: expected one of 'sum', 'present'");
    });

    it("grows in a worker when it is text", async () => {
      triton = new Triton();
      const handle = triton.bind({
        modelName: "words",
        inputs: [{ name: "word", dtype: "BYTES", shape: [1] }],
        outputs: [{ name: "all", dtype: "BYTES", shape: [1] }],
        inferFunc: new URL("../../../core/test/behaviours/fixtures/remembers-words.mjs", import.meta.url),
        config: {
          sequence: {
            states: [{ input: "past", output: "present", dtype: "BYTES", shape: [-1], initial: ["a", "é"] }],
          },
        },
      });
      const say = async (word: string, options: object) => {
        const { all } = await handle.inferSample({ word: [word] }, { sequence: { id: "s", ...options } });
        return new TextDecoder().decode(all.data[0]);
      };
      expect(await say("b", { start: true })).toBe("aéb");
      expect(await say("c", {})).toBe("aébc");
      expect(await say("d", { end: true })).toBe("aébcd");
      expect(await say("e", { start: true })).toBe("aée");
    });
  });
});
