import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { batch, Triton } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/core/testing";
import { describe, expect, it } from "vitest";
import { identityOnnx } from "../../../../test/support/onnx-models.js";
import { thrownBy } from "../../../../test/support/outcome.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

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

describe("padding", () => {
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
    const triton = new Triton({ delayScheduler: 2 });
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
    const triton = new Triton({ delayScheduler: 2 });
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
      "identity/config.pbtxt": `backend: "onnxruntime"\nmax_batch_size: 8\n${config}\n`,
      "identity/1/model.onnx": identityOnnx("FLOAT", ["batch", "length"]),
    });
    const logger = { error() {}, warn() {}, info() {}, debug() {} };
    await using triton = new Triton({
      modelRepository: files.path,
      delayScheduler: 2,
      logger,
      exitOnError: false,
    });
    await triton.ready().catch(() => {});
    const [row] = await triton.service.repositoryIndex(false);
    if (row!.state !== "READY") return row!.reason;
    const values = [[[1]], [[2, 3, 4]]];
    const answers = await Promise.all(values.map((given) => triton.infer("identity", { x: given })));
    const { executionCount } = triton.service.statistics("identity", "")[0]!;
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
