import { getEventListeners } from "node:events";
import {
  batch,
  type InferOptions,
  type ModelHandle,
  type ModelOptions,
  RESCHEDULE,
  sequenceState,
  Tensor,
  Triton,
} from "@tritonjs/core";
import type { RequestHandle } from "@tritonjs/core/internal";
import { scheduling } from "@tritonjs/scheduling";
import { serviceOf } from "@tritonjs/server";
import { type InferenceRequest, VirtualClock } from "@tritonjs/testing";
import { afterEach, describe, expect, it } from "vitest";
import { echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { outcomeOf, outcomesOf, thrownBy } from "../../../../test/support/outcome.js";
import { sendRequest } from "../../../../test/support/send-request.js";

let triton = new Triton();

afterEach(() => triton.close());

const inputs = [{ name: "x", dtype: "INT32", shape: [1] }] as const;

const outputs = [{ name: "y", dtype: "INT32", shape: [1] }] as const;

type Handle = ModelHandle<typeof inputs, typeof outputs>;

async function next(handle: Handle, value: number, options: InferOptions): Promise<number> {
  const { y } = await handle.inferSample({ x: [value] }, options);
  return y.data[0]!;
}

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

describe("the callback of a sequence model", () => {
  it("sees ids, flags and control tensors, and null requests in the direct strategy", async () => {
    triton = new Triton();
    const seen: unknown[] = [];
    const handle: Handle = triton.bind({
      modelName: "m",
      inputs,
      outputs,
      inferFunc: (requests) => {
        seen.push(
          ...requests.map(({ inputs: given, correlationId, sequenceStart, sequenceEnd, ready }) => ({
            tensors: Object.entries(given).map(([name, array]) => [name, ...array.data]),
            about: [correlationId, sequenceStart, sequenceEnd, ready],
          })),
        );
        return requests.map(({ inputs: { x } }) => ({ y: x }));
      },
      config: {
        sequence: {
          strategy: "direct",
          controls: { start: "START", end: "END", ready: "READY", correlationId: { name: "ID" } },
        },
      },
    });
    await next(handle, 5, { sequence: { id: 1, start: true } });
    await next(handle, 6, { sequence: { id: 2, start: true, end: true } });
    const tensors = (x: number, start: number, end: number, ready: number, id: bigint) =>
    [["x", x], ["START", start], ["END", end], ["READY", ready], ["ID", id]]; // biome-ignore format: a table
    expect(seen).toEqual([
      { tensors: tensors(5, 1, 0, 1, 1n), about: [1n, true, false, true] },
      { tensors: tensors(0, 0, 0, 0, 0n), about: [undefined, false, false, false] },
      { tensors: tensors(6, 1, 1, 1, 2n), about: [2n, true, true, true] },
    ]);
  });

  it("made with batch() gets the rows of null requests too, and their results are dropped", async () => {
    triton = new Triton();
    const rows: number[][] = [];
    const handle: Handle = triton.bind({
      modelName: "m",
      inputs,
      outputs,
      inferFunc: batch(({ x }) => {
        rows.push([...x.data]);
        return { y: x };
      }),
      config: { sequence: { strategy: "direct" } },
    });
    await next(handle, 1, { sequence: { id: 1, start: true } });
    expect(await next(handle, 2, { sequence: { id: 2, start: true } })).toBe(2);
    expect(rows).toEqual([[1], [0, 2]]);
    expect(handle.statistics().inferenceCount).toBe(2);
  });
});

describe("sequence deadlines", () => {
  const clock = new VirtualClock();

  afterEach(async () => {
    const closed = triton.close();
    await clock.advance(60_000);
    await closed;
  });

  /** A model of sequences in four slots, whose batches take 10 ms for each row up to the highest slot, taught by 20 batches. */
  async function bind(strategy: "direct" | "oldest", config: ModelOptions = {}) {
    triton = new Triton({ clock, allowCpuMetrics: false, extensions: [scheduling()] });
    const batches: number[][] = [];
    const model = { msPerRow: 10 };
    const handle = triton.bind({
      modelName: "echo",
      inputs: echoInputs,
      outputs: echoOutputs,
      inferFunc: batch<typeof echoInputs, typeof echoOutputs>(async ({ x }) => {
        batches.push([...x.data]);
        await new Promise<void>((done) => clock.setTimer(model.msPerRow * x.data.length, done));
        return { y: x };
      }),
      config: {
        maxBatchSize: 4,
        sequence: { strategy, maxSequenceIdleMicroseconds: 60_000_000 },
        parameters: { deadlines: "true" },
        ...config,
      },
    });
    await handle.ready();
    const send = (id: number, value: number, flags: object = {}, options: InferOptions = {}) =>
      outcomeOf(echo(handle, value, { sequence: { id, ...flags }, ...options }));
    const teach = async () => {
      for (let round = 0; round < 5; round++) {
        for (let slots = 1; slots <= 4; slots++) {
          const sent = Array.from({ length: slots }, (_, i) =>
            send(i + 1, 0, { start: round === 0 && i === slots - 1 }),
          );
          await clock.advance(60);
          await Promise.all(sent);
        }
      }
      batches.length = 0;
    };
    return { handle, batches, send, teach, model };
  }

  describe.each(["direct", "oldest"] as const)("deadlines of sequences under the %s strategy", (strategy) => {
    it("refuse a request without hope, and its sequence goes on", async () => {
      const { send, teach, batches } = await bind(strategy);
      await teach();
      const hopeless = send(1, 1, {}, { timeoutMs: 4 });
      await clock.settle();
      expect(await hopeless).toContain("Request for model 'echo' was refused: expected an answer within");
      const next = send(1, 2, {}, { timeoutMs: 500 });
      await clock.advance(60);
      expect(await next).toBe("done");
      expect(batches.flat()).not.toContain(1);
    });

    it("end a sequence whose START was refused, so that the model sees no request of it without a START", async () => {
      const { send, teach, batches } = await bind(strategy);
      await teach();
      const end = send(4, 0, { end: true });
      await clock.advance(60);
      expect(await end).toBe("done");
      const start = send(9, 1, { start: true }, { timeoutMs: 4 });
      const next = send(9, 2);
      await clock.advance(60);
      expect(await start).toContain("was refused");
      expect(await next).toMatch(
        /another request of the same sequence was cancelled|must specify the START flag/,
      );
      expect(await send(9, 3)).toContain("must specify the START flag");
      const again = send(9, 4, { start: true, end: true });
      await clock.advance(60);
      expect(await again).toBe("done");
      expect(batches.flat().filter((value) => value > 0)).toEqual([4]);
    });

    it("free the slot of a sequence whose END was refused", async () => {
      const { send, teach } = await bind(strategy);
      await teach();
      const end = send(2, 1, { end: true }, { timeoutMs: 4 });
      await clock.settle();
      expect(await end).toContain("was refused");
      const other = send(77, 5, { start: true, end: true });
      await clock.advance(100);
      expect(await other).toBe("done");
    });

    it("refuse nothing while the model is cold, and try again after a while when it seemed too slow", async () => {
      const { send, model } = await bind(strategy);
      const first = send(1, 1, { start: true, end: true }, { timeoutMs: 15 });
      await clock.advance(60);
      expect(await first).toBe("done");
      model.msPerRow = 100;
      for (let i = 0; i < 8; i++) {
        const slow = send(1, 1, { start: i === 0 });
        await clock.advance(500);
        await slow;
      }
      model.msPerRow = 10;
      const tight = send(1, 2, {}, { timeoutMs: 50 });
      await clock.settle();
      expect(await tight).toContain("was refused");
      await clock.advance(1500);
      const later = send(1, 3, {}, { timeoutMs: 50 });
      await clock.advance(60);
      expect(await later).toBe("done");
    });
  });

  describe("deadlines of sequences under the direct strategy", () => {
    it("leave higher slots to the next batch when a request in a low slot would be late with them", async () => {
      const { send, teach, batches } = await bind("direct");
      await teach();
      const sent = [
        send(1, 1, {}, { timeoutMs: 15 }),
        ...[2, 3, 4].map((id) => send(id, id, {}, { timeoutMs: 500 })),
      ];
      await clock.advance(200);
      expect(await Promise.all(sent)).toEqual(["done", "done", "done", "done"]);
      expect(batches[0]).toEqual([1]);
      expect(batches[1]!.slice(1)).toEqual([2, 3, 4]);
    });

    it("wait for further requests no longer than a deadline allows", async () => {
      const { send, batches } = await bind("direct", {
        sequence: { strategy: "direct", maxQueueDelayMicroseconds: 200_000, minimumSlotUtilization: 1 },
      });
      // All slots send, so nothing waits meanwhile.
      const start = [1, 2, 3, 4].map((id) => send(id, 0, { start: true }));
      await clock.advance(60);
      await Promise.all(start);
      for (let i = 0; i < 8; i++) {
        const sent = [1, 2, 3, 4].map((id) => send(id, 0));
        await clock.advance(60);
        await Promise.all(sent);
      }
      batches.length = 0;
      const tight = send(1, 5, {}, { timeoutMs: 100 });
      await clock.advance(100);
      expect(await tight).toBe("done");
    });
  });
});

async function run(handle: Handle, value: number): Promise<number> {
  const { y } = await handle.inferSample({ x: [value] });
  return y.data[0]!;
}

describe("a callback that reschedules a request", () => {
  it("gets it in its next batch", async () => {
    triton = new Triton();
    const batches: number[][] = [];
    const left = sequenceState(() => ({ runs: 0 }));
    const handle: Handle = triton.bind({
      modelName: "m",
      inputs,
      outputs,
      inferFunc: (requests) => {
        batches.push(requests.map(({ inputs: { x } }) => x.data[0]!));
        return requests.map(({ inputs: { x }, sequence }) => {
          const state = left(sequence);
          state.runs++;
          return state.runs < x.data[0]! ? RESCHEDULE : { y: [[state.runs]] };
        });
      },
      config: { sequence: { iterative: true } },
    });
    expect(await Promise.all([2, 4, 1].map((times) => run(handle, times)))).toEqual([2, 4, 1]);
    expect(batches).toEqual([[2, 4, 1], [2, 4], [4], [4]]);
  });

  it("may read the signal of each batch, which removes its listeners from the request", async () => {
    triton = new Triton();
    const left = sequenceState(() => ({ runs: 0 }));
    const handle = triton.bind({
      modelName: "m",
      inputs,
      outputs,
      inferFunc: (requests, { signal }) =>
        requests.map(({ sequence }) =>
          !signal.aborted && ++left(sequence).runs < 50 ? RESCHEDULE : { y: [[1]] },
        ),
      config: { sequence: { iterative: true } },
    });
    await handle.ready();
    const given = new Map([["x", Tensor.fromElements("INT32", [1, 1], Int32Array.of(1))]]);
    const request = await new Promise<RequestHandle>((resolve) => {
      sendRequest(serviceOf(triton).model("m", ""), { inputs: given }, (_outcome, _final, sent) =>
        resolve(sent),
      );
    });
    expect(getEventListeners((request as InferenceRequest).signal, "abort").length).toBeLessThanOrEqual(1);
  });

  it("gets it in its next batch in a worker too", async () => {
    triton = new Triton();
    const inferFunc = new URL("./fixtures/counts-down.mjs", import.meta.url);
    const config = { sequence: { iterative: true } };
    const handle: Handle = triton.bind({ modelName: "m", inputs, outputs, inferFunc, config });
    await handle.ready();
    expect(await Promise.all([3, 1, 2].map((times) => run(handle, times)))).toEqual([3, 1, 2]);
  });

  it("may respond in between when it is decoupled", async () => {
    triton = new Triton();
    const sent = sequenceState(() => ({ count: 0 }));
    const steps: number[] = [];
    const handle: Handle = triton.bind({
      modelName: "m",
      inputs,
      outputs,
      inferFunc: (requests) => {
        steps.push(requests.length);
        return requests.map(({ inputs: { x }, sequence, responseSender }) => {
          const state = sent(sequence);
          void responseSender.send({ y: [[state.count++]] });
          return state.count < x.data[0]! ? RESCHEDULE : undefined;
        });
      },
      config: { decoupled: true, sequence: { iterative: true } },
    });
    const read = async (count: number) => {
      const values: number[] = [];
      for await (const { y } of handle.stream({ x: [[count]] })) values.push(y.data[0]!);
      return values;
    };
    expect(await Promise.all([read(3), read(1), read(2)])).toEqual([[0, 1, 2], [0], [0, 1]]);
    expect(steps).toEqual([3, 2, 1]);
  });

  it("gets an error when its model has no iterative sequences", async () => {
    triton = new Triton();
    const inferFunc = () => [RESCHEDULE] as const;
    const handle: Handle = triton.bind({ modelName: "m", inputs, outputs, inferFunc });
    expect(await outcomeOf(run(handle, 1))).toBe(
      "INTERNAL model 'm' returned RESCHEDULE, which needs sequence batching with iterative sequences",
    );
  });
});
