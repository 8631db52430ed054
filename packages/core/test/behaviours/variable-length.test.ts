import {
  batch,
  type InferOptions,
  type ModelConfig,
  type ModelOptions,
  type TensorSpec,
  Triton,
  type VariableLengthOptions,
} from "@tritonjs/core";
import type { BatchInputSpec } from "@tritonjs/core/types";
import { VirtualClock, withSchedulerDelay } from "@tritonjs/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseConfigText } from "../../../../test/golden/support/config-text.js";
import { outcomeOf, thrownBy } from "../../../../test/support/outcome.js";

const x = { name: "x", dtype: "FP32", shape: [-1] } as const;

const lengthOf: VariableLengthOptions["cost"] = ({ inputs }) => inputs.x!.shape[1]!;

/** Lengths up to 4, up to 8, and so on. */
const bucketOf: VariableLengthOptions["batchBy"] = ({ inputs }) => 4 * Math.ceil(inputs.x!.shape[1]! / 4);

const ones = (count: number) => new Array<number>(count).fill(1);

/** A model that records the lengths of the requests in each batch, and stops in each batch while it is held. */
async function served(batcher: ModelOptions["batcher"], config: ModelOptions = {}) {
  const clock = new VirtualClock();
  const triton = new Triton({ clock });
  const batches: number[][] = [];
  let release = () => {};
  const state = { held: false };
  const handle = triton.bind({
    modelName: "lengths",
    inputs: [x],
    outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
    inferFunc: async (requests) => {
      batches.push(requests.map(({ inputs }) => inputs.x.shape[1]!));
      if (state.held) {
        await new Promise<void>((resolve) => {
          release = resolve;
        });
      }
      return requests.map(() => ({ y: [[1]] }));
    },
    config: { maxBatchSize: 8, batcher, ...config },
  });
  await handle.ready();
  const send = (count: number, options: InferOptions = {}) => handle.inferSample({ x: ones(count) }, options);
  return { clock, triton, handle, batches, send, state, release: () => release() };
}

describe("the batchBy option", () => {
  it("joins requests of one group, even with requests of other groups between them", async () => {
    const { clock, batches, send, handle } = await served({ batchBy: bucketOf, pad: { x: 0 } });
    for (const count of [1, 5, 2, 7, 3]) void send(count);
    await clock.settle();
    expect(batches).toEqual([
      [1, 2, 3],
      [5, 7],
    ]);
    expect(handle.queue().recentCuts.map(({ reason }) => reason)).toEqual(["INSTANCE", "INSTANCE"]);
  });

  it("gives each group its own delay: a full group does not wait for another", async () => {
    const { clock, batches, send } = await served(
      { batchBy: bucketOf, pad: { x: 0 }, maxQueueDelayMicroseconds: 5000 },
      { maxBatchSize: 2 },
    );
    void send(1);
    await clock.advance(1);
    for (const count of [5, 6]) void send(count);
    await clock.settle();
    expect(batches).toEqual([[5, 6]]);
    await clock.advance(4);
    expect(batches).toEqual([[5, 6], [1]]);
  });

  it("runs the group first whose next request is first by level and arrival", async () => {
    const { clock, batches, send, state, release } = await served(
      { batchBy: bucketOf, pad: { x: 0 }, priorityLevels: 2, defaultPriorityLevel: 2 },
      {},
    );
    state.held = true;
    void send(1);
    await clock.advance(1);
    for (const count of [5, 2, 9]) {
      void send(count);
      await clock.advance(1);
    }
    void send(13, { priority: 1 });
    for (let i = 0; i < 5; i++) {
      await clock.settle();
      release();
    }
    await clock.settle();
    expect(batches).toEqual([[1], [13], [5], [2], [9]]);
  });

  it("keeps the limits of the queue, which count all groups together", async () => {
    const { clock, send, state, release, handle } = await served({
      batchBy: bucketOf,
      defaultQueuePolicy: { maxQueueSize: 2 },
    });
    state.held = true;
    void send(1);
    await clock.settle();
    const waiting = [send(1), send(5)];
    expect(await outcomeOf(send(9))).toContain("Exceeds maximum queue size");
    expect(handle.queue()).toMatchObject({ queued: 2, levels: [{ priorityLevel: 0, queued: 2 }] });
    state.held = false;
    release();
    await clock.settle();
    await Promise.all(waiting);
  });

  it("keeps responses in order across all groups with preserve_ordering", async () => {
    const { clock, batches, send } = await served({
      batchBy: bucketOf,
      pad: { x: 0 },
      preserveOrdering: true,
    });
    const order: number[] = [];
    for (const count of [1, 5, 2]) void send(count).then(() => order.push(count));
    await clock.settle();
    expect(batches).toEqual([[1, 2], [5]]);
    expect(order).toEqual([1, 2, 5]);
  });

  it("sends a waiting group when an instance takes the batch before it", async () => {
    const { clock, batches, send, state, release } = await served({
      batchBy: bucketOf,
      pad: { x: 0 },
      preferredBatchSize: [2, 8],
      maxQueueDelayMicroseconds: 1_000_000,
    });
    state.held = true;
    for (const count of [9, 9]) void send(count);
    await clock.settle();
    // A batch of two that waits for the instance, and two more requests that wait for a larger batch.
    for (const count of [1, 2, 3, 4]) {
      void send(count);
      await clock.settle();
    }
    release();
    await clock.settle();
    expect(batches).toEqual([
      [9, 9],
      [1, 2],
    ]);
    release();
    await clock.settle();
    expect(batches.at(-1)).toEqual([3, 4]);
  });

  it("forgets empty groups", async () => {
    const { clock, batches, send } = await served({ batchBy: ({ id }) => id });
    for (let i = 0; i < 500; i++) {
      void send(1, { id: String(i) });
      await clock.settle();
    }
    expect(batches).toHaveLength(500);
  });
});

describe("the cost option", () => {
  it("limits the total cost of a batch", async () => {
    const { clock, batches, send, handle } = await served({
      cost: lengthOf,
      maxBatchCost: 10,
      pad: { x: 0 },
    });
    for (const count of [4, 5, 3, 7, 1]) void send(count);
    await clock.settle();
    expect(batches).toEqual([[4, 5], [3, 7], [1]]);
    expect(handle.queue().cuts).toMatchObject({ COST: 2, INSTANCE: 1 });
  });

  it("ends the wait when no further request can join", async () => {
    const { clock, batches, send } = await served({
      cost: lengthOf,
      maxBatchCost: 10,
      pad: { x: 0 },
      maxQueueDelayMicroseconds: 5000,
    });
    void send(6);
    await clock.advance(1);
    expect(batches).toEqual([]);
    void send(4);
    await clock.settle();
    expect(batches).toEqual([[6, 4]]);
  });

  it("rejects a request that costs more than a batch may", async () => {
    const { send } = await served({ cost: lengthOf, maxBatchCost: 10 });
    expect(await outcomeOf(send(11, { id: "long" }))).toBe(
      "INVALID_ARG [request id: long] cost of model 'lengths': expected at most 10, got 11",
    );
  });
});

describe("a faulty function of the model", () => {
  it.each([
    [
      { batchBy: () => undefined },
      "batchBy of model 'lengths': expected a string, number, bigint or boolean, got undefined",
    ],
    [
      { batchBy: () => Number.NaN },
      "batchBy of model 'lengths': expected a string, number, bigint or boolean, got NaN",
    ],
    [
      { cost: () => -1, maxBatchCost: 5 },
      "cost of model 'lengths': expected a finite number of at least 0, got -1",
    ],
    [
      { cost: () => "1", maxBatchCost: 5 },
      "cost of model 'lengths': expected a finite number of at least 0, got string",
    ],
  ])("fails only its request with a wrong result: %o", async (options, text) => {
    const first = Object.entries(options).find(([, value]) => typeof value === "function")!;
    const [name, fn] = first as [string, () => unknown];
    const good = name === "cost" ? 1 : "a";
    const { clock, send } = await served({
      ...options,
      [name]: ({ id }: { id: string }) => (id === "bad" ? fn() : good),
    } as ModelOptions["batcher"]);
    const others = send(1);
    expect(await outcomeOf(send(1, { id: "bad" }))).toBe(`INVALID_ARG [request id: bad] ${text}`);
    await clock.settle();
    expect(await outcomeOf(others)).toBe("done");
  });

  it("fails only its request when it throws", async () => {
    const { clock, send } = await served({
      batchBy: ({ id }) => {
        if (id === "bad") throw new Error("no such bucket");
        return "a";
      },
    });
    const others = send(1);
    expect(await outcomeOf(send(1, { id: "bad" }))).toBe(
      "INVALID_ARG [request id: bad] batchBy of model 'lengths' threw an error: no such bucket",
    );
    await clock.settle();
    expect(await outcomeOf(others)).toBe("done");
  });
});

describe("ragged batches", () => {
  const x = { name: "x", dtype: "FP32", shape: [-1], allowRaggedBatch: true } as const;
  const y = { name: "y", dtype: "FP32", shape: [1] } as const;

  const ends = {
    name: "ends",
    dtype: "INT32",
    shape: [1],
    batchInput: { kind: "BATCH_ACCUMULATED_ELEMENT_COUNT", sourceInput: "x" },
  } as const;

  let triton: Triton;

  beforeEach(() => {
    triton = withSchedulerDelay({ requests: 3 }, () => new Triton());
  });

  afterEach(() => triton.close());

  /** The sums of three requests of different lengths. */
  async function sumsOf(handle: {
    inferSample(inputs: { x: number[] }): Promise<{ y: { data: ArrayLike<number> } }>;
  }) {
    const answers = await Promise.all(
      [[1, 2], [3, 4, 5], [6]].map((values) => handle.inferSample({ x: values })),
    );
    return answers.map((answer) => answer.y.data[0]);
  }

  describe("ragged inputs", () => {
    it("reach a batch callback as one row of elements, with the batch inputs", async () => {
      const seen: unknown[] = [];
      const handle = triton.bind({
        modelName: "ragged",
        inputs: [x, ends],
        outputs: [y],
        inferFunc: batch((inputs) => {
          seen.push([inputs.x.shape, [...inputs.x.data], [...inputs.ends.data]]);
          return { y: new Float32Array(inputs.ends.shape[0]!) };
        }),
      });
      await sumsOf(handle);
      expect(seen).toEqual([[[6], [1, 2, 3, 4, 5, 6], [2, 5, 6]]]);
    });

    it("reach a module in a worker in the same form", async () => {
      const handle = triton.bind({
        modelName: "ragged",
        inputs: [x, ends],
        outputs: [y],
        inferFunc: new URL("./fixtures/ragged-sums.mjs", import.meta.url),
      });
      await handle.ready();
      expect(await sumsOf(handle)).toEqual([3, 12, 6]);
      expect(handle.statistics().executionCount).toBe(1);
    });

    it("reach a plain callback unchanged, as in Triton's Python backend", async () => {
      const seen: unknown[] = [];
      const handle = triton.bind({
        modelName: "ragged",
        inputs: [x],
        outputs: [y],
        inferFunc: (requests) => {
          seen.push(requests.map(({ inputs }) => inputs.x.shape));
          return requests.map(({ inputs }) => ({
            y: [[inputs.x.data.reduce((sum, value) => sum + value, 0)]],
          }));
        },
      });
      expect(await sumsOf(handle)).toEqual([3, 12, 6]);
      expect(seen).toEqual([
        [
          [1, 2],
          [1, 3],
          [1, 1],
        ],
      ]);
    });

    it("can be set up in a Triton model configuration", async () => {
      const handle = triton.bind({
        modelName: "ragged",
        outputs: [y],
        inferFunc: new URL("./fixtures/ragged-sums.mjs", import.meta.url),
        modelConfig: parseConfigText(
          `max_batch_size: 8
         input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true }
         output { name: "y" data_type: TYPE_FP32 dims: [ 1 ] }
         batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "ends" data_type: TYPE_INT32 source_input: "x" }
         dynamic_batching { }`,
          "ragged",
        ) as Partial<ModelConfig>,
      });
      await handle.ready();
      const infer = handle as unknown as Parameters<typeof sumsOf>[0];
      expect(await sumsOf(infer)).toEqual([3, 12, 6]);
    });
  });

  describe("invalid batch inputs and outputs", () => {
    const bind = (inputs: readonly TensorSpec[], outputs: readonly TensorSpec[] = [y], modelConfig = {}) =>
      thrownBy(() =>
        triton.bind({
          modelName: "bad",
          inputs,
          outputs,
          inferFunc: batch(() => ({ y: [] })) as never,
          modelConfig,
        }),
      );
    const made = (kind: string, sourceInput: string, dtype: TensorSpec["dtype"] = "INT32"): TensorSpec => ({
      name: "made",
      dtype,
      shape: [1],
      batchInput: { kind, sourceInput } as BatchInputSpec,
    });

    it("are rejected with Triton's texts, all at once", () => {
      const text = bind(
        [x, made("BATCH_SIZE", "x"), made("BATCH_ITEM_SHAPE", "z", "INT64")],
        [{ ...y, batchOutput: { kind: "BATCH_SCATTER_WITH_INPUT_SHAPE", sourceInput: "z" } }],
      );
      expect(text).toContain("unknown batch input kind 'BATCH_SIZE' for bad");
      expect(text).toContain("batch input data type must be TYPE_INT32 or TYPE_FP32 for bad");
      expect(text.split("unknown source input name 'z' for bad")).toHaveLength(3);
    });

    it("are rejected in a model configuration, too", () => {
      const text = bind([x], [y], {
        batchInput: [
          { kind: "BATCH_ITEM_SHAPE", targetName: ["c"], dataType: "TYPE_INT32", sourceInput: ["x", "x"] },
        ],
        batchOutput: [
          { kind: "BATCH_SCATTER_WITH_INPUT_SHAPE", targetName: ["y", "y", "z"], sourceInput: ["x"] },
        ],
      });
      expect(text).toContain("batch input kind 'BATCH_ITEM_SHAPE' expects 1 source input, got 2 for bad");
      expect(text).toContain("target output name 'y' can only be specified once for bad");
      expect(text).toContain("unknown target output name 'z' for bad");
    });
  });
});
