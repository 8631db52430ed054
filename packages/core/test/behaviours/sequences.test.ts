import {
  batch,
  type InferOptions,
  type ModelHandle,
  type ModelOptions,
  sequenceState,
  Triton,
} from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/core/testing";
import { afterEach, describe, expect, it } from "vitest";
import { outcomeOf, outcomesOf, thrownBy } from "../../../../test/support/outcome.js";

const inputs = [{ name: "x", dtype: "INT32", shape: [1] }] as const;
const outputs = [{ name: "y", dtype: "INT32", shape: [1] }] as const;
type Handle = ModelHandle<typeof inputs, typeof outputs>;

let triton: Triton;
afterEach(() => triton.close());

/** A model that adds up the values of its sequences. */
async function accumulator(sequence: NonNullable<ModelOptions["sequence"]> = {}): Promise<Handle> {
  triton = new Triton();
  const totals = sequenceState(() => ({ sum: 0 }));
  const handle = triton.bind({
    modelName: "sum",
    inputs,
    outputs,
    inferFunc: (requests) =>
      requests.map(({ inputs: { x }, sequence: own }) => {
        const total = totals(own);
        total.sum += x.data[0]!;
        return { y: [[total.sum]] };
      }),
    config: { sequence },
  });
  await handle.ready();
  return handle;
}

async function next(handle: Handle, value: number, options: InferOptions): Promise<number> {
  const { y } = await handle.inferSample({ x: [value] }, options);
  return y.data[0]!;
}

describe("the state of a sequence", () => {
  it.each(["oldest", "direct"] as const)(
    "lives from START to END under the %s strategy",
    async (strategy) => {
      const handle = await accumulator({ strategy });
      const results: number[] = [];
      for (const [id, value, flags] of [
        [1, 10, { start: true }],
        ["one", 5, { start: true }],
        [1, 20, {}],
        ["one", 6, { end: true }],
        [1n, 30, { end: true }],
        [1, 1, { start: true, end: true }],
      ] as const) {
        results.push(await next(handle, value, { sequence: { id, ...flags } }));
      }
      expect(results).toEqual([10, 5, 30, 11, 60, 1]);
    },
  );

  it("begins anew when the sequence restarts", async () => {
    const handle = await accumulator();
    await next(handle, 1, { sequence: { id: 1, start: true } });
    expect(await next(handle, 2, { sequence: { id: 1, start: true } })).toBe(2);
  });

  it("is correct for many sequences at once, whatever their batches", async () => {
    const handle = await accumulator({ maxCandidateSequences: 50 });
    const sums = await Promise.all(
      Array.from({ length: 200 }, async (_, id) => {
        const length = 2 + (id % 5);
        let sum = 0;
        for (let i = 0; i < length; i++) {
          const flags = { start: i === 0, end: i === length - 1 };
          sum = await next(handle, id, { sequence: { id: id + 1, ...flags } });
        }
        return sum === id * length;
      }),
    );
    expect(sums).toEqual(Array.from({ length: 200 }, () => true));
  });

  it("lives in the worker of a module", async () => {
    triton = new Triton();
    const inferFunc = new URL("./fixtures/accumulates.mjs", import.meta.url);
    const instanceGroup = { count: 2 };
    const config = { sequence: {}, maxBatchSize: 1, instanceGroup };
    const handle: Handle = triton.bind({ modelName: "sum", inputs, outputs, inferFunc, config });
    await handle.ready();
    for (const sequenceId of [1, 2]) {
      expect(await next(handle, sequenceId, { sequence: { id: sequenceId, start: true } })).toBe(sequenceId);
    }
    expect(await next(handle, 5, { sequence: { id: 1, end: true } })).toBe(6);
    expect(await next(handle, 5, { sequence: { id: 2, end: true } })).toBe(7);
    expect(await next(handle, 5, { sequence: { id: 3, start: true } })).toBe(5);
  });

  it("is lost with its worker; the client gets an error and can start again", async () => {
    triton = new Triton();
    const inferFunc = new URL("./fixtures/accumulates.mjs", import.meta.url);
    const config = { sequence: {}, maxBatchSize: 1 };
    const evicted: string[] = [];
    const handle: Handle = triton.bind({
      modelName: "sum",
      inputs,
      outputs,
      inferFunc,
      config,
      onSequenceEvict: ({ correlationId }, reason) => evicted.push(`${correlationId}: ${reason}`),
    });
    await handle.ready();
    await next(handle, 1, { sequence: { id: 1, start: true } });
    const sent = [-1, 2].map((value) => next(handle, value, { sequence: { id: 1 } }));
    expect(await outcomesOf(sent)).toEqual([
      "INTERNAL instance 'sum_0' of model 'sum' crashed: exited with code 3",
      "UNAVAILABLE an instance of model 'sum' failed, and the state of its sequences is lost: start the sequence again",
    ]);
    expect(evicted).toEqual(["1: failed"]);
    expect(await outcomeOf(next(handle, 3, { sequence: { id: 1 } }))).toMatch(/must specify the START flag/);
    expect(await next(handle, 4, { sequence: { id: 1, start: true } })).toBe(4);
  });
});

describe("a sequence that its client never ends", () => {
  it("is evicted when it is idle after its last request, and its state is released", async () => {
    const clock = new VirtualClock();
    triton = new Triton({ clock });
    const states = sequenceState(() => ({ values: [] as number[] }));
    const evicted: unknown[] = [];
    const handle: Handle = triton.bind({
      modelName: "m",
      inputs,
      outputs,
      inferFunc: (requests) =>
        requests.map(({ inputs: { x }, sequence }) => {
          states(sequence).values.push(x.data[0]!);
          return { y: x };
        }),
      config: { sequence: { maxSequenceIdleMicroseconds: 500_000 } },
      onSequenceEvict: (sequence, reason) => {
        evicted.push([sequence.correlationId, reason, states(sequence).values]);
      },
    });
    await Promise.all([next(handle, 1, { sequence: { id: 8, start: true } }), clock.advance(100)]);
    await Promise.all([next(handle, 2, { sequence: { id: 8 } }), clock.advance(100)]);
    expect(evicted).toEqual([]);
    await clock.advance(500);
    expect(evicted).toEqual([[8n, "idle", [1, 2]]]);
  });

  it("is evicted when the model is unbound", async () => {
    triton = new Triton();
    const evicted: string[] = [];
    const handle = triton.bind({
      modelName: "m",
      inputs,
      outputs,
      inferFunc: batch(({ x }) => ({ y: x })),
      config: { sequence: {} },
      onSequenceEvict: (_, reason) => evicted.push(reason),
    });
    await next(handle, 1, { sequence: { id: 1, start: true } });
    await handle.unbind();
    expect(evicted).toEqual(["stopped"]);
  });
});

describe("invalid uses of sequences", () => {
  it("are rejected at bind, all at once", () => {
    triton = new Triton({ responseCache: { byteSize: 1000 } });
    const bind = () =>
      triton.bind({
        modelName: "m",
        inputs: [...inputs, { name: "START", dtype: "INT32", shape: [1] }],
        outputs,
        inferFunc: batch(({ x }) => ({ y: x })),
        config: {
          responseCache: true,
          batcher: {},
          sequence: {
            strategy: "direct",
            maxCandidateSequences: 3,
            minimumSlotUtilization: 1.5,
            maxSequenceIdleMicroseconds: -1,
            controls: { start: "START", end: "START" },
          },
        },
      });
    expect(thrownBy(bind).split("\n- ").slice(1)).toEqual([
      "config.sequence.maxCandidateSequences has no effect with strategy 'direct': leave it out",
      "config.batcher and config.sequence are both given, but a model has one scheduler: leave one of them out",
      "Response Cache does not currently support model m with sequence batching scheduler. Please disable the " +
        "response cache.",
      "sequence batching max sequence idle must be a number of microseconds >= 0 for m",
      "sequence batching control tensor 'START' is specified for multiple control kinds for m",
      "model 'm' lists the sequence batching control tensor 'START' as an input: take it out of 'input'",
      "sequence batching minimum slot utilization must be in range (0.0, 1.0] for m",
    ]);
  });

  it("include a sequence without an id", async () => {
    const handle = await accumulator();
    const none = [0, 0n, ""].map((id) => ({ id, start: true }));
    for (const sequence of [undefined, ...none]) {
      expect(await outcomeOf(next(handle, 1, { sequence }))).toBe(
        "INVALID_ARG inference request to model 'sum' must specify a non-zero or non-empty correlation ID",
      );
    }
    expect(await outcomeOf(next(handle, 1, { sequence: { id: -1 } }))).toMatch(
      /^INVALID_ARG sequence\.id: expected an integer/,
    );
  });

  it("include a client that sends control tensors", async () => {
    const handle = await accumulator({ controls: { start: "START" } });
    const given = { x: [[1]], START: [[1]] } as never;
    const outcome = await outcomeOf(handle.infer(given, { sequence: { id: 1, start: true } }));
    expect(outcome).toMatch(/^INVALID_ARG model 'sum' has no input 'START': expected 'x'$/);
  });
});
