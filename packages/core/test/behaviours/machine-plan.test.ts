import { batch, type ModelOptions, Triton, type TritonOptions } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/core/testing";
import { afterEach, describe, expect, it } from "vitest";
import { EchoModel, echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { outcomeOf, outcomesOf, thrownBy } from "../../../../test/support/outcome.js";
import { SeededRandom } from "../../../../test/support/seeded-random.js";

const ONE_CORE: TritonOptions = {
  rateLimit: "deadlines",
  rateLimitResources: [{ name: "cores", count: 1 }],
};

/** Models with these configurations on one machine; their batches wait for the test. */
async function served(options: TritonOptions, ...configs: readonly ModelOptions[]) {
  const clock = new VirtualClock();
  const triton = new Triton({ clock, ...options });
  const model = new EchoModel();
  const handles = configs.map((config, i) =>
    triton.bind({
      modelName: `m${i}`,
      inputs: echoInputs,
      outputs: echoOutputs,
      inferFunc: model.callback(),
      config: { maxBatchSize: 4, ...config },
    }),
  );
  for (const handle of handles) await handle.ready();
  model.held = true;
  /** Ends the running batch after a time. */
  const step = async (ms: number) => {
    await clock.advance(ms);
    model.release();
    await clock.settle();
  };
  return { clock, triton, model, handles, step };
}

const BY_DEADLINE: ModelOptions = { batcher: { deadlines: true } };

describe("one plan for all models of a machine", () => {
  it("runs as many batches as there are cores, the most urgent of any model first", async () => {
    const { clock, model, handles, step } = await served(ONE_CORE, BY_DEADLINE, BY_DEADLINE, BY_DEADLINE);
    const [a, b, c] = handles;
    const first = echo(a!, 0, { timeoutMs: 9000 });
    await clock.settle();
    const answers = [
      first,
      echo(a!, 1, { timeoutMs: 5000 }),
      echo(b!, 2, { timeoutMs: 1000 }),
      echo(c!, 3, { timeoutMs: 3000 }),
    ];
    await clock.settle();
    expect(model.batches).toEqual([[0]]);
    for (let i = 0; i < 4; i++) await step(10);
    expect(model.batches).toEqual([[0], [2], [3], [1]]);
    expect(await Promise.all(answers)).toEqual([0, 1, 2, 3]);
  });

  it("chooses the most urgent of the requests that arrive in one turn", async () => {
    const { clock, model, handles, step } = await served(ONE_CORE, BY_DEADLINE, BY_DEADLINE);
    const answers = [echo(handles[0]!, 1, { timeoutMs: 5000 }), echo(handles[1]!, 2, { timeoutMs: 1000 })];
    await clock.settle();
    expect(model.batches).toEqual([[2]]);
    for (let i = 0; i < 2; i++) await step(10);
    await Promise.all(answers);
  });

  it("forms the batch when its turn has come, so that urgent requests that came meanwhile are in it", async () => {
    const { clock, model, handles, step } = await served(ONE_CORE, BY_DEADLINE, {
      ...BY_DEADLINE,
      maxBatchSize: 1,
    });
    const answers = [echo(handles[0]!, 0), echo(handles[1]!, 1, { timeoutMs: 5000 })];
    await clock.settle();
    answers.push(echo(handles[1]!, 2, { timeoutMs: 1000 }));
    await clock.settle();
    for (let i = 0; i < 3; i++) await step(10);
    expect(model.batches.slice(1)).toContainEqual([2]);
    expect(model.batches.flat().indexOf(2)).toBeLessThan(model.batches.flat().lastIndexOf(1) + 2);
    await Promise.all(answers);
  });

  it("does not starve a request without a deadline beside a stream of urgent ones", async () => {
    const { clock, model, handles, step } = await served(ONE_CORE, BY_DEADLINE, {});
    const patient = echo(handles[1]!, 99);
    const urgent: Promise<unknown>[] = [];
    for (let i = 0; i < 60; i++) {
      urgent.push(outcomeOf(echo(handles[0]!, i, { timeoutMs: 500 })));
      await clock.settle();
      await step(40);
    }
    expect(model.batches.flat()).toContain(99);
    for (let i = 0; i < 5; i++) await step(1);
    expect(await patient).toBe(99);
    await Promise.all(urgent);
  });

  it("lets a model run on several cores that its group asks for, and keeps them for it", async () => {
    const twoCores: ModelOptions = {
      ...BY_DEADLINE,
      instanceGroup: { rateLimiter: { resources: [{ name: "cores", count: 2 }] } },
    };
    const options = { ...ONE_CORE, rateLimitResources: [{ name: "cores", count: 2 }] };
    const { clock, model, handles, step } = await served(options, BY_DEADLINE, twoCores, BY_DEADLINE);
    const answers = [echo(handles[0]!, 0, { timeoutMs: 9000 })];
    await clock.settle();
    answers.push(echo(handles[1]!, 1, { timeoutMs: 1000 }), echo(handles[2]!, 2, { timeoutMs: 5000 }));
    await clock.settle();
    // One core is free, but it is kept for the more urgent batch, which needs both.
    expect(model.batches).toEqual([[0]]);
    for (let i = 0; i < 3; i++) await step(10);
    expect(model.batches).toEqual([[0], [1], [2]]);
    await Promise.all(answers);
  });

  it("counts no core for a model whose group has an empty rate limiter", async () => {
    const free: ModelOptions = { ...BY_DEADLINE, instanceGroup: { rateLimiter: {} } };
    const { clock, model, handles } = await served(ONE_CORE, BY_DEADLINE, free);
    const answers = [echo(handles[0]!, 0), echo(handles[1]!, 1)];
    await clock.settle();
    expect(model.batches.flat().sort()).toEqual([0, 1]);
    model.releaseAll();
    await Promise.all(answers);
  });

  it("lends the core of a model that waits for another one", async () => {
    const clock = new VirtualClock();
    const triton = new Triton({ clock, ...ONE_CORE });
    const inner = triton.bind({
      modelName: "inner",
      inputs: echoInputs,
      outputs: echoOutputs,
      inferFunc: ([request]) => [{ y: request!.inputs.x }],
      config: { maxBatchSize: 1, ...BY_DEADLINE },
    });
    const outer = triton.bind({
      modelName: "outer",
      inputs: echoInputs,
      outputs: echoOutputs,
      inferFunc: async ([request], context) => {
        const { y } = await context.infer("inner", { x: request!.inputs.x });
        return [{ y: y as never }];
      },
      config: { maxBatchSize: 1, ...BY_DEADLINE },
    });
    await Promise.all([inner.ready(), outer.ready()]);
    const answers = Promise.all([echo(outer, 7), echo(outer, 8), echo(inner, 9)]);
    await clock.settle();
    expect(await answers).toEqual([7, 8, 9]);
    await triton.close();
  });

  it("goes on after requests that were cancelled while they waited for a core, and after close", async () => {
    const { clock, triton, model, handles, step } = await served(ONE_CORE, BY_DEADLINE, BY_DEADLINE);
    const controller = new AbortController();
    const first = echo(handles[0]!, 0);
    await clock.settle();
    const given = outcomeOf(echo(handles[1]!, 1, { signal: controller.signal }));
    await clock.settle();
    controller.abort();
    expect(await given).toBe("CANCELLED the request was cancelled");
    await step(10);
    expect(await first).toBe(0);
    const last = echo(handles[1]!, 2);
    await clock.settle();
    const closed = triton.close();
    await step(10);
    expect(await last).toBe(2);
    await closed;
    expect(model.batches).toEqual([[0], [2]]);
  });
});

describe("under random loads, one plan with shares over all models", () => {
  it.each([1, 2])(
    "ends each request once, runs none that was refused, starves none, keeps order and budget (seed %i)",
    async (seed) => {
      const random = new SeededRandom(seed);
      const clock = new VirtualClock();
      const cores = 1 + random.below(2);
      const triton = new Triton({
        clock,
        allowCpuMetrics: false,
        rateLimit: "deadlines",
        rateLimitResources: [{ name: "cores", count: cores }],
        ...(seed % 2 === 0 && { shares: { by: "caller", weights: { gold: 3 } } }),
      });
      let running = 0;
      const ran = new Set<number>();
      const handles = [0, 1, 2].map((model) => {
        const fixedMs = random.below(10);
        return triton.bind({
          modelName: `m${model}`,
          inputs: echoInputs,
          outputs: echoOutputs,
          inferFunc: batch<typeof echoInputs, typeof echoOutputs>(async ({ x }) => {
            expect(++running).toBeLessThanOrEqual(cores);
            for (const value of x.data) {
              expect(ran.has(value)).toBe(false);
              ran.add(value);
            }
            await new Promise<void>((done) => clock.setTimer(fixedMs + x.data.length, done));
            running--;
            return { y: x };
          }),
          config: {
            maxBatchSize: 1 + random.below(8),
            batcher: model === 2 ? {} : { deadlines: true, preserveOrdering: model === 1 },
          },
        });
      });
      for (const handle of handles) await handle.ready();
      const ended = new Map<number, string>();
      const refused: number[] = [];
      for (let i = 0; i < 250; i++) {
        const timeoutMs = [undefined, 5, 20, 60, 300][random.below(5)];
        const controller = new AbortController();
        const options = {
          signal: controller.signal,
          parameters: { caller: random.chance(0.3) ? "gold" : "other" },
          ...(timeoutMs !== undefined && { timeoutMs }),
        };
        void echo(handles[random.below(3)]!, i, options).then(
          (y) => {
            expect([y, ended.has(i)]).toEqual([i, false]);
            ended.set(i, "answer");
          },
          (error) => {
            expect(ended.has(i)).toBe(false);
            ended.set(i, timeoutMs === undefined ? error.code : "limited");
            if (error.reason === "DEADLINE_TOO_CLOSE") {
              expect(ran.has(i)).toBe(false);
              refused.push(i);
            }
          },
        );
        if (random.chance(0.05)) controller.abort();
        if (random.chance(0.5)) await clock.advance(random.below(12));
      }
      await clock.advance(60_000);
      expect(ended.size).toBe(250);
      for (const i of refused) expect(ran.has(i)).toBe(false);
      // A request without a limit is answered, unless its caller gave it up.
      expect([...ended.values()].filter((end) => !["answer", "limited", "CANCELLED"].includes(end))).toEqual(
        [],
      );
      expect(running).toBe(0);
      const closed = triton.close();
      await clock.advance(1000);
      await closed;
    },
  );

  it("gives callers that send too much the sum of their shares, over all models", async () => {
    const clock = new VirtualClock();
    const triton = new Triton({
      clock,
      allowCpuMetrics: false,
      rateLimit: "deadlines",
      rateLimitResources: [{ name: "cores", count: 1 }],
      shares: { by: "caller", weights: { gold: 3 } },
    });
    const served = { gold: 0, other: 0 };
    const handles = [10, 20].map((ms) =>
      triton.bind({
        modelName: `takes-${ms}`,
        inputs: echoInputs,
        outputs: echoOutputs,
        inferFunc: batch<typeof echoInputs, typeof echoOutputs>(async ({ x }) => {
          served[x.data[0] === 1 ? "gold" : "other"] += ms;
          await new Promise<void>((done) => clock.setTimer(ms, done));
          return { y: x };
        }),
        config: { maxBatchSize: 1 },
      }),
    );
    for (const handle of handles) await handle.ready();
    const sent: Promise<unknown>[] = [];
    // What a request costs is learnt from the batches that have run.
    for (let i = 0; i < 10; i++) sent.push(echo(handles[i % 2]!, 0, { parameters: { caller: "first" } }));
    await clock.advance(1000);
    served.other = 0;
    // Both have more than 10 s of work; gold uses the slow model only.
    for (let i = 0; i < 600; i++) sent.push(echo(handles[1]!, 1, { parameters: { caller: "gold" } }));
    for (let i = 0; i < 1200; i++) sent.push(echo(handles[i % 2]!, 0, { parameters: { caller: "other" } }));
    await clock.advance(8000);
    expect(served.gold / (served.gold + served.other)).toBeCloseTo(0.75, 1);
    await clock.advance(60_000);
    await Promise.all(sent);
    const closed = triton.close();
    await clock.advance(1000);
    await closed;
  });
});

describe("shares", () => {
  type ShareOptions = NonNullable<TritonOptions["shares"]>;
  const clock = new VirtualClock();
  let triton: Triton;

  afterEach(async () => {
    const closed = triton.close();
    await clock.advance(10_000);
    await closed;
  });

  /** A model that takes 10 ms for each batch of one row, and the values in the order in which it ran them. */
  async function bind(config: ModelOptions) {
    triton = new Triton({ clock, allowCpuMetrics: false });
    const ran: number[] = [];
    const handle = triton.bind({
      modelName: "echo",
      inputs: echoInputs,
      outputs: echoOutputs,
      inferFunc: batch<typeof echoInputs, typeof echoOutputs>(async ({ x }) => {
        ran.push(...x.data);
        await new Promise<void>((done) => clock.setTimer(10, done));
        return { y: x };
      }),
      config: { maxBatchSize: 1, ...config },
    });
    await handle.ready();
    const send = (value: number, caller: string) => echo(handle, value, { parameters: { caller } });
    return { handle, ran, send };
  }

  describe("shares", () => {
    it("let a caller with one request go before the many of another", async () => {
      const { ran, send } = await bind({ batcher: { shares: { by: "caller" } } });
      const sent = [...[1, 2, 3, 4, 5].map((value) => send(value, "a")), send(6, "b")];
      await clock.advance(100);
      expect(await outcomesOf(sent)).toEqual(Array(6).fill("done"));
      expect(ran.indexOf(6)).toBeLessThanOrEqual(2);
    });

    it("take the name of the caller from a function", async () => {
      const { ran, handle } = await bind({
        batcher: { shares: { by: ({ priority }) => String(priority), weights: { "2": 100 } } },
      });
      const sent = [1, 2, 3, 4].map((value) => echo(handle, value, { priority: 1 }));
      sent.push(...[5, 6, 7].map((value) => echo(handle, value, { priority: 2 })));
      await clock.advance(100);
      await Promise.all(sent);
      expect(ran.slice(1, 5)).toEqual(expect.arrayContaining([5, 6, 7]));
    });

    it("refuse the request that would run last when the queue is full", async () => {
      const { ran, send } = await bind({
        batcher: { shares: { by: "caller" }, defaultQueuePolicy: { maxQueueSize: 3 } },
      });
      const many = [1, 2, 3, 4].map((value) => outcomeOf(send(value, "a")));
      await clock.settle();
      const few = outcomeOf(send(5, "b"));
      await clock.advance(100);
      expect(await few).toBe("done");
      const outcomes = await Promise.all(many);
      expect(
        outcomes.filter((outcome) => outcome.includes("Exceeds maximum queue size")).length,
      ).toBeGreaterThan(0);
      expect(ran).toContain(5);
    });

    it("hold for models that run each request alone, by the configuration", async () => {
      const { ran, send } = await bind({
        batcher: false,
        parameters: { shares_by: "caller", shares_weights: "b=2, c=1" },
      });
      const sent = [...[1, 2, 3].map((value) => send(value, "a")), send(4, "b")];
      await clock.advance(100);
      await Promise.all(sent);
      expect(ran.indexOf(4)).toBeLessThanOrEqual(2);
    });

    it("are part of the configuration, and exclude settings that contradict them", async () => {
      const { handle } = await bind({ batcher: { shares: { by: "x-tenant", weights: { gold: 3 } } } });
      expect(handle.config().parameters).toEqual({
        shares_by: { stringValue: "x-tenant" },
        shares_weights: { stringValue: "gold=3" },
      });
      const other = (batcher: ModelOptions["batcher"]) =>
        thrownBy(() =>
          triton.bind({
            modelName: "other",
            inputs: echoInputs,
            outputs: echoOutputs,
            inferFunc: batch<typeof echoInputs, typeof echoOutputs>(({ x }) => ({ y: x })),
            config: { batcher },
          }),
        );
      expect(other({ shares: { by: "caller" }, targetLatencyMs: 5 })).toContain(
        "model 'other' has shares and a target latency: leave one of them out",
      );
      expect(other({ shares: { by: "caller", weights: { a: 0 } } })).toContain(
        "share of caller 'a' of model 'other': expected a weight above 0, got 0",
      );
      expect(other({ shares: { by: "caller" }, batchBy: () => 1 })).toContain(
        "config.batcher.batchBy and config.batcher.shares are both given: leave one of them out",
      );
    });
  });

  describe("shares over all models", () => {
    /** Two models that take 10 ms for each request on one core, and the values in the order in which they ran. */
    async function bindBoth(options: TritonOptions = {}) {
      triton = new Triton({
        clock,
        allowCpuMetrics: false,
        shares: { by: "caller" },
        rateLimit: "deadlines",
        rateLimitResources: [{ name: "cores", count: 1 }],
        ...options,
      });
      const ran: number[] = [];
      const handles = ["one", "two"].map((modelName) =>
        triton.bind({
          modelName,
          inputs: echoInputs,
          outputs: echoOutputs,
          inferFunc: batch<typeof echoInputs, typeof echoOutputs>(async ({ x }) => {
            ran.push(...x.data);
            await new Promise<void>((done) => clock.setTimer(10, done));
            return { y: x };
          }),
          config: { maxBatchSize: 1 },
        }),
      );
      for (const handle of handles) await handle.ready();
      const send = (model: number, value: number, caller: string) =>
        echo(handles[model]!, value, { parameters: { caller } });
      return { handles, ran, send };
    }

    it("let a caller of one model go before another one that has filled the queue of the other model", async () => {
      const { ran, send } = await bindBoth();
      const sent = [1, 2, 3, 4, 5, 6].map((value) => send(0, value, "a"));
      await clock.advance(25);
      sent.push(send(1, 7, "b"));
      await clock.advance(200);
      expect(await outcomesOf(sent)).toEqual(Array(7).fill("done"));
      expect(ran.indexOf(7)).toBeLessThanOrEqual(3);
    });

    it("charge a caller at one model for what it has used of another", async () => {
      const { ran, send } = await bindBoth();
      // Times are learnt, and a is far ahead of its share.
      const sent = Array.from({ length: 30 }, (_, i) => send(0, i, "a"));
      await clock.advance(400);
      for (const [value, caller] of [
        [101, "a"],
        [102, "b"],
        [103, "b"],
      ] as const) {
        sent.push(send(1, value, caller));
      }
      await clock.advance(100);
      await Promise.all(sent);
      expect(ran.indexOf(101)).toBeGreaterThan(ran.indexOf(102));
    });

    it("show in the configurations of the models, and leave models with shares of their own alone", async () => {
      const { handles } = await bindBoth({ shares: { by: "x-tenant", weights: { gold: 2 } } });
      const own = triton.bind({
        modelName: "own",
        inputs: echoInputs,
        outputs: echoOutputs,
        inferFunc: batch<typeof echoInputs, typeof echoOutputs>(({ x }) => ({ y: x })),
        config: { batcher: { shares: { by: "other" } } },
      });
      await own.ready();
      const named = (handle: { config(): { parameters: unknown } }) => handle.config().parameters;
      expect(named(handles[0]!)).toMatchObject({
        shares_by: { stringValue: "x-tenant" },
        shares_weights: { stringValue: "gold=2" },
      });
      expect(named(own)).toMatchObject({ shares_by: { stringValue: "other" } });
    });

    it("are checked when the server is made", () => {
      triton = new Triton({ clock });
      const make = (shares: object) => new Triton({ clock, shares: shares as ShareOptions });
      expect(() => make({ by: "caller", weights: { a: 0 } })).toThrow(
        "shares.weights of caller 'a': expected a number above 0, got 0",
      );
      expect(() => make({})).toThrow("shares.by: expected 'caller', the name of a header or a function");
      expect(() => make({ by: "caller", weight: {} })).toThrow("shares");
    });
  });
});
