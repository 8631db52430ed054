import {
  batch,
  done,
  type InferContext,
  type StepwiseModel,
  sample,
  stepwise,
  Tensor,
  Triton,
  TritonError,
} from "@tritonjs/core";
import type { RequestHandle } from "@tritonjs/core/internal";
import { serviceOf } from "@tritonjs/server";
import { type InferenceRequest, VirtualClock } from "@tritonjs/testing";
import { afterEach, describe, expect, it } from "vitest";
import { SeededRandom } from "../../../../test/support/seeded-random.js";
import { sendRequest } from "../../../../test/support/send-request.js";

let triton = new Triton();

afterEach(() => triton.close());

const inputs = [{ name: "n", dtype: "INT32", shape: [1] }] as const;

describe("generators", () => {
  const outputs = [{ name: "i", dtype: "INT32", shape: [1] }] as const;

  /** A model `count` that answers its requests with a generator. */
  function bind(
    generator: (n: number, context: InferContext) => AsyncGenerator<{ i: readonly number[] }>,
    options = {},
  ) {
    triton = new Triton(options);
    return triton.bind({
      modelName: "count",
      inputs,
      outputs,
      inferFunc: sample(async function* ({ n }, context) {
        yield* generator(n.get(0), context);
      }),
    });
  }

  type Handle = ReturnType<typeof bind>;

  /** The responses to a request; an error comes last. */
  async function read(
    handle: Handle,
    n: number,
    limit = Number.POSITIVE_INFINITY,
    options = {},
  ): Promise<unknown[]> {
    const seen: unknown[] = [];
    try {
      for await (const { i } of handle.stream({ n: [n] }, options)) if (seen.push(i.get(0)) >= limit) break;
    } catch (error) {
      seen.push(`${TritonError.from(error).code}: ${TritonError.from(error).message}`);
    }
    return seen;
  }

  /** Counts forever and records when it is ended. */
  function endless() {
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const told = { ended, made: 0 };
    const generator = async function* () {
      try {
        for (let i = 0; ; i++) {
          told.made++;
          yield { i: [i] };
        }
      } finally {
        end();
      }
    };
    return { told, generator };
  }

  describe("a generator that never ends", () => {
    it("ends with its reader and makes no more responses than are read", async () => {
      const { told, generator } = endless();
      const handle = bind(generator);
      expect(await read(handle, 0, 3)).toEqual([0, 1, 2]);
      expect(await read(handle, 0, 2)).toEqual([0, 1]);
      await told.ended;
      expect(told.made).toBeLessThan(20);
    });

    it("ends at the timeout of its request", async () => {
      const { told, generator } = endless();
      const handle = bind(generator);
      const seen = await read(handle, 0, Number.POSITIVE_INFINITY, { timeoutMs: 20 });
      expect(seen.at(-1)).toMatch(/^UNAVAILABLE: /);
      expect(await read(handle, 0, 1)).toEqual([0]);
      await told.ended;
    });

    it("ends when the server closes, and its reader gets an error", async () => {
      const { told, generator } = endless();
      const handle = bind(generator, { exitTimeoutSecs: 0 });
      const stream = handle.stream({ n: [0] });
      expect((await stream.next()).value?.i.get(0)).toBe(0);
      const closed = triton.close();
      const rest = (async () => {
        for await (const _ of stream);
      })();
      await expect(rest).rejects.toThrow("model 'count' was stopped before the request finished");
      await closed;
      await told.ended;
    });
  });

  describe("a generator that outlives its client", () => {
    it("sees its signal abort while it waits, and the next request runs", async () => {
      const controller = new AbortController();
      let aborted = 0;
      const handle = bind(async function* (n, { signal }) {
        yield { i: [n] };
        if (n === 0) return;
        setImmediate(() => controller.abort());
        await new Promise<void>((resolve) =>
          signal.addEventListener("abort", () => resolve(), { once: true }),
        );
        aborted++;
        yield { i: [-1] };
      });
      const seen = await read(handle, 1, Number.POSITIVE_INFINITY, { signal: controller.signal });
      expect(seen).toEqual([1, expect.stringMatching(/^CANCELLED: /)]);
      expect(await read(handle, 0)).toEqual([0]);
      expect(aborted).toBe(1);
    });
  });

  describe("a generator that fails", () => {
    it("after its first response: the client gets that response, then the error, and the next request runs", async () => {
      const handle = bind(async function* (n) {
        yield { i: [n] };
        if (n > 0) throw new TritonError("UNAVAILABLE", "the source is dry");
      });
      expect(await read(handle, 3)).toEqual([3, "UNAVAILABLE: the source is dry"]);
      expect(await read(handle, 0)).toEqual([0]);
    });

    it("by yielding wrong tensors: the client gets the correct responses, then the error", async () => {
      let ended = false;
      const handle = bind(async function* (n) {
        try {
          yield { i: [n] };
          yield { i: [1, 2] };
          yield { i: [3] };
        } finally {
          ended = true;
        }
      });
      expect(await read(handle, 7)).toEqual([
        7,
        expect.stringMatching(/^INTERNAL: model 'count' returned .*output 'i'/),
      ]);
      expect(await read(handle, 7, 1)).toEqual([7]);
      expect(ended).toBe(true);
    });
  });

  describe("a generator for a whole batch", () => {
    it("answers each request with its own rows, and continues for the requests that are left", async () => {
      triton = new Triton();
      let ended = false;
      const handle = triton.bind({
        modelName: "count",
        inputs,
        outputs,
        inferFunc: batch(async function* ({ n }) {
          try {
            for (let i = 0; ; i++) yield { i: [...n.data].map((value) => [value + i]) };
          } finally {
            ended = true;
          }
        }),
      });
      const take = async (n: number, limit: number) => {
        const seen: number[] = [];
        for await (const { i } of handle.stream({ n: [[n]] })) if (seen.push(i.get(0, 0)) === limit) break;
        return seen;
      };
      expect(await Promise.all([take(10, 2), take(20, 5)])).toEqual([
        [10, 11],
        [20, 21, 22, 23, 24],
      ]);
      expect(await take(0, 1)).toEqual([0]);
      expect(ended).toBe(true);
    });

    it("ends each request separately when it yields plain lists", async () => {
      triton = new Triton();
      const handle = triton.bind({
        modelName: "count",
        inputs,
        outputs,
        inferFunc: async (requests) => {
          for (let i = 0; requests.some(({ responseSender }) => responseSender.isOpen); i++) {
            for (const {
              inputs: { n },
              responseSender,
            } of requests) {
              if (!responseSender.isOpen) continue;
              if (i < n.get(0, 0)) await responseSender.send({ i: [[i]] });
              else responseSender.close();
            }
          }
        },
        config: { decoupled: true },
      });
      const lengths = await Promise.all(
        [3, 0, 5].map(async (n) => {
          let count = 0;
          for await (const _ of handle.stream({ n: [[n]] })) count++;
          return count;
        }),
      );
      expect(lengths).toEqual([3, 0, 5]);
    });
  });
});

describe("stepwise", () => {
  const outputs = [
    { name: "left", dtype: "INT32", shape: [1] },
    { name: "together", dtype: "INT32", shape: [1] },
  ] as const;

  interface Count {
    left: number;
  }

  type Model = StepwiseModel<typeof inputs, typeof outputs, Count>;

  /** Counts down from `n`, one response a step, and reports how many requests shared the step. */
  const countDown: Model = {
    start: ({ n }) => ({ left: n.get(0) }),
    step: (active) =>
      active.map((state) => {
        state.left--;
        const result = { left: [state.left], together: [active.length] };
        return state.left === 0 ? done(result) : result;
      }),
  };

  function bind(model: Partial<Model> = {}, maxBatchSize = 4) {
    triton = new Triton();
    const inferFunc = stepwise<typeof inputs, typeof outputs, Count>({ ...countDown, ...model });
    return triton.bind({ modelName: "steps", inputs, outputs, inferFunc, config: { maxBatchSize } });
  }

  type Handle = ReturnType<typeof bind>;

  /** All responses to a request, with `error code: text` last when it fails. */
  async function read(handle: Handle, n: number, options: { signal?: AbortSignal } = {}): Promise<unknown[]> {
    const seen: unknown[] = [];
    try {
      for await (const { left } of handle.stream({ n: [[n]] }, options)) seen.push(left.get(0, 0));
    } catch (error) {
      seen.push(`${TritonError.from(error).code}: ${TritonError.from(error).message}`);
    }
    return seen;
  }

  describe("requests of a stepwise callback", () => {
    it("run together, and each ends separately", async () => {
      const steps: number[][] = [];
      const handle = bind({
        step: (active, instance) => {
          steps.push(active.map(({ left }) => left));
          return countDown.step(active, instance);
        },
      });
      const all = await Promise.all([1, 3, 2].map((n) => read(handle, n)));
      expect(all).toEqual([[0], [2, 1, 0], [1, 0]]);
      expect(steps).toEqual([[1, 3, 2], [2, 1], [1]]);
      expect(handle.statistics().inferenceStats.success.count).toBe(3);
    });

    it("join running ones between two steps, up to the largest batch", async () => {
      const steps: number[][] = [];
      let second: Promise<unknown[]> | undefined;
      const handle = bind(
        {
          step: (active, instance) => {
            steps.push(active.map(({ left }) => left));
            second ??= Promise.all([read(handle, 2), read(handle, 1)]);
            return countDown.step(active, instance);
          },
        },
        2,
      );
      expect(await read(handle, 4)).toEqual([3, 2, 1, 0]);
      expect(await second).toEqual([[1, 0], [0]]);
      // Never more than two at once; the third joined after the second had left.
      expect(steps.map((step) => step.length)).toEqual([1, 2, 2, 2]);
      expect(steps[3]).toEqual([1, 1]);
    });

    it("leave between two steps when they are cancelled, and their state is released", async () => {
      const ended: number[] = [];
      const controller = new AbortController();
      const handle = bind({
        start: ({ n }) => ({ left: n.get(0) }),
        step: (active, instance) => {
          if (active.some(({ left }) => left === 997)) controller.abort();
          return countDown.step(active, instance);
        },
        end: ({ left }) => ended.push(left),
      });
      const seen = await read(handle, 1000, { signal: controller.signal });
      expect(seen.at(-1)).toMatch(/^CANCELLED: /);
      expect(await read(handle, 1)).toEqual([0]);
      expect(ended).toEqual([996, 0]);
    });

    it("wait for a slow client without delaying others", async () => {
      const handle = bind();
      const slow = handle.stream({ n: [[10_000]] });
      expect((await slow.next()).value?.left.get(0, 0)).toBe(9999);
      expect(await read(handle, 50)).toHaveLength(50);
      let took = 1;
      for await (const { left } of slow) {
        took++;
        if (took === 40) break;
        expect(left.get(0, 0)).toBe(10_000 - took);
      }
      expect(took).toBe(40);
    });

    it("may have steps without a response, and end without one", async () => {
      const handle = bind({
        step: (active) => active.map((state) => (--state.left > 0 ? undefined : done())),
      });
      expect(await read(handle, 3)).toEqual([]);
    });

    it("have one row", async () => {
      const handle = bind();
      await expect(handle.stream({ n: [[1], [2]] }).next()).rejects.toThrow(
        "inference request to model 'steps': expected one row, because requests of this model run step by step",
      );
    });
  });

  describe("a faulty stepwise callback", () => {
    it("ends only one request with an error in start", async () => {
      const handle = bind({
        start: async ({ n }) => {
          if (n.get(0) === 13) throw new TritonError("INVALID_ARG", "not thirteen");
          return { left: n.get(0) };
        },
      });
      expect(await Promise.all([read(handle, 13), read(handle, 2)])).toEqual([
        ["INVALID_ARG: not thirteen"],
        [1, 0],
      ]);
    });

    it("ends the requests of the step with an error in step, and the next ones run", async () => {
      const handle = bind({
        step: (active, instance) => {
          if (active.some(({ left }) => left === 7)) throw new Error("seven broke it");
          return countDown.step(active, instance);
        },
      });
      const broken = ["INTERNAL: model 'steps': seven broke it"];
      expect(await Promise.all([read(handle, 7), read(handle, 2)])).toEqual([broken, broken]);
      expect(await read(handle, 2)).toEqual([1, 0]);
    });

    it("ends one request with an error or wrong tensors for it", async () => {
      const handle = bind({
        step: (active, instance) => {
          const results = [...(countDown.step(active, instance) as readonly never[])] as unknown[];
          active.forEach(({ left }, i) => {
            if (left === 7) results[i] = new TritonError("UNAVAILABLE", "not this one");
            if (left === 17) results[i] = { left: [1, 2, 3], together: [1] };
          });
          return results as never;
        },
      });
      const all = await Promise.all([read(handle, 9), read(handle, 19), read(handle, 3)]);
      expect(all).toEqual([
        [8, "UNAVAILABLE: not this one"],
        [18, expect.stringMatching(/^INTERNAL: model 'steps' returned .*output 'left'/)],
        [2, 1, 0],
      ]);
    });

    it("gets an error for a wrong number of results", async () => {
      const handle = bind({ step: () => [] });
      expect(await read(handle, 1)).toEqual([
        "INTERNAL: step of model 'steps': expected a list of 1 results, one for each request, got 0 results",
      ]);
    });

    it("does not stop the model from closing when a step never ends", async () => {
      triton = new Triton({ exitTimeoutSecs: 0 });
      const inferFunc = stepwise<typeof inputs, typeof outputs, Count>({
        ...countDown,
        step: () => new Promise<never>(() => {}),
      });
      const handle = triton.bind({ modelName: "steps", inputs, outputs, inferFunc });
      await handle.ready();
      const answer = read(handle, 1);
      await triton.close();
      expect(await answer).toEqual([expect.stringMatching(/^UNAVAILABLE: /)]);
    });
  });

  describe("a module with a stepwise callback", () => {
    const module = new URL("./fixtures/steps.mjs", import.meta.url);

    it("runs its loop in a worker", async () => {
      triton = new Triton();
      const config = { stepwise: true, maxBatchSize: 3 };
      const handle = triton.bind({ modelName: "steps", inputs, outputs, inferFunc: module, config });
      const together: number[] = [];
      const lengths = await Promise.all(
        [5, 40, 40, 40, 6].map(async (n) => {
          let responses = 0;
          for await (const answer of handle.stream({ n: [[n]] })) {
            responses++;
            together.push(answer.together.get(0, 0));
          }
          return responses;
        }),
      );
      expect(lengths).toEqual([5, 40, 40, 40, 6]);
      expect(Math.max(...together)).toBe(3);
    });

    it("removes cancelled requests", async () => {
      triton = new Triton();
      const config = { stepwise: true, maxBatchSize: 1 };
      const handle = triton.bind({ modelName: "steps", inputs, outputs, inferFunc: module, config });
      for await (const { left } of handle.stream({ n: [[1_000_000]] })) if (left.get(0, 0) < 999_990) break;
      const last = [];
      for await (const { left } of handle.stream({ n: [[2]] })) last.push(left.get(0, 0));
      expect(last).toEqual([1, 0]);
    });

    it("removes requests that are cancelled on their way to the worker", async () => {
      triton = new Triton();
      const config = { stepwise: true, maxBatchSize: 4 };
      const handle = triton.bind({ modelName: "steps", inputs, outputs, inferFunc: module, config });
      await handle.ready();
      const endless = new Map([["n", Tensor.fromElements("INT32", [1, 1], Int32Array.of(1e9))]]);
      const model = serviceOf(triton).model("steps", "");
      const given = Array.from(
        { length: 4 },
        () => sendRequest(model, { inputs: endless }, () => {}) as InferenceRequest,
      );
      expect(given.every((request) => request.executing)).toBe(true);
      for (const request of given) request.cancel();
      const together = [];
      for await (const answer of handle.stream({ n: [[50]] })) together.push(answer.together.get(0, 0));
      expect(together.at(-1)).toBe(1);
    });

    it.each(["worker", "inline"] as const)("must be bound with config.stepwise, %s", async (isolation) => {
      triton = new Triton();
      const config = { decoupled: true, instanceGroup: { isolation } };
      const handle = triton.bind({ modelName: "steps", inputs, outputs, inferFunc: module, config });
      await expect(handle.ready()).rejects.toThrow(
        "model 'steps': the module's callback is made with stepwise(): set config.stepwise",
      );
    });

    it("is required by config.stepwise", async () => {
      triton = new Triton();
      const other = new URL("./fixtures/counts-up.mjs", import.meta.url);
      const config = { stepwise: true };
      const handle = triton.bind({ modelName: "steps", inputs, outputs, inferFunc: other, config });
      await expect(handle.ready()).rejects.toThrow(
        "model 'steps': config.stepwise is set, but the module's callback is not made with stepwise()",
      );
    });

    it("is replaced when its worker uses too much memory", async () => {
      triton = new Triton();
      const instanceGroup = { recycle: { aboveMemoryMb: 0.001 } };
      const config = { stepwise: true, maxBatchSize: 2, instanceGroup };
      const handle = triton.bind({ modelName: "steps", inputs, outputs, inferFunc: module, config });
      await handle.ready();
      const [instance] = handle.instances();
      expect(instance).toMatchObject({ isolation: "worker", memoryBytes: undefined });
      expect(await read(handle, 2)).toEqual([1, 0]);
      expect(handle.instances()[0]!.memoryBytes).toBeGreaterThan(1000);
      // Each instance exceeds the limit after its first batch; the next one has not been measured yet.
      while (handle.instances()[0]!.memoryBytes !== undefined) expect(await read(handle, 2)).toEqual([1, 0]);
    });
  });

  it("options that contradict a stepwise callback are rejected at bind", () => {
    triton = new Triton();
    const inferFunc = stepwise<typeof inputs, typeof outputs, Count>(countDown);
    const config = { batching: false, decoupled: false, sequence: {} } as const;
    expect(() => triton.bind({ modelName: "steps", inputs, outputs, inferFunc, config })).toThrow(
      [
        "cannot bind model 'steps':",
        "- a stepwise callback needs config.maxBatchSize: set it to the number of requests that run together",
        "- config.decoupled is false, but a stepwise callback sends any number of responses: leave config.decoupled out",
        "- config.sequence is given, but a stepwise callback keeps its own state between steps: leave config.sequence out",
      ].join("\n"),
    );
    expect(() =>
      triton.bind({
        modelName: "s",
        inputs,
        outputs,
        inferFunc: (all) => all.map(() => new Error()),
        config: { stepwise: true },
      }),
    ).toThrow("config.stepwise is true, but a callback is not made with stepwise()");
  });

  describe.each([1, 2])("under answers, errors, cancellations, timeouts and close, seed %i", (seed) => {
    it("every request of a stepwise callback settles once, and no step exceeds its limit", async () => {
      const random = new SeededRandom(seed);
      const clock = new VirtualClock();
      triton = new Triton({ clock, exitTimeoutSecs: 0.02 });
      let largest = 0;
      let kept = 0;
      const inferFunc = stepwise<typeof inputs, typeof outputs, Count>({
        start: async ({ n }) => {
          if (random.chance(0.2)) await clock.settle();
          if (random.chance(0.05)) throw new TritonError("UNSUPPORTED", "not this one");
          kept++;
          return { left: n.get(0) };
        },
        step: async (active) => {
          largest = Math.max(largest, active.length);
          await new Promise<void>((resolve) => clock.setTimer(random.below(3), resolve));
          if (random.chance(0.03)) throw new Error("the step broke");
          return active.map((state) => {
            if (random.chance(0.02)) return new TritonError("UNSUPPORTED", "not this one");
            if (--state.left <= 0) return random.chance(0.5) ? done() : done({ left: [0], together: [1] });
            return random.chance(0.2) ? undefined : { left: [state.left], together: [active.length] };
          });
        },
        end: () => {
          kept--;
        },
      });
      const config = { maxBatchSize: 4, instanceGroup: { count: 2 } };
      const handle = triton.bind({ modelName: "steps", inputs, outputs, inferFunc, config });
      await handle.ready();
      const ends: number[] = [];
      const open: RequestHandle[] = [];
      const send = () => {
        const index = ends.push(0) - 1;
        const init = {
          inputs: new Map([["n", Tensor.fromElements("INT32", [1, 1], Int32Array.of(1 + random.below(8)))]]),
          deadline: random.chance(0.2) ? clock.now() + 1 + random.below(20) : undefined,
        };
        try {
          const request = sendRequest(serviceOf(triton).model("steps", ""), init, (_outcome, final) => {
            if (final) ends[index]!++;
          });
          open.push(request);
        } catch {
          ends[index]!++;
        }
      };
      let closed: Promise<void> | undefined;
      for (let i = 0; i < 200; i++) {
        for (let count = random.below(4); count > 0; count--) send();
        if (random.chance(0.3)) open[random.below(open.length)]?.cancel();
        if (random.chance(0.2)) open[random.below(open.length)]?.pause();
        if (random.chance(0.5)) for (const request of open) request.resume();
        if (i === 180) closed = triton.close();
        await clock.advance(random.below(3));
      }
      await clock.advance(1000);
      await closed;
      await clock.advance(1000);
      expect(ends.filter((count) => count !== 1)).toEqual([]);
      expect(largest).toBe(4);
      expect(kept).toBe(0);
    });
  });
});
