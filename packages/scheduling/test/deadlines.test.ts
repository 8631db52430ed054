import { batch, type InferOptions, type ModelOptions, Triton, TritonError } from "@tritonjs/core";
import { deadlines, scheduling } from "@tritonjs/scheduling";
import { serviceOf } from "@tritonjs/server";
import { VirtualClock } from "@tritonjs/testing";
import { afterEach, describe, expect, it } from "vitest";
import { type EchoHandle, echo, echoInputs, echoOutputs } from "../../../test/support/echo-model.js";
import { outcomeOf, thrownBy } from "../../../test/support/outcome.js";
import { SeededRandom } from "../../../test/support/seeded-random.js";

const benches: Bench[] = [];

/** A model whose batches take `fixedMs + perRowMs` a row. */
class Bench {
  readonly clock = new VirtualClock();
  readonly triton = new Triton({
    clock: this.clock,
    allowCpuMetrics: false,
    extensions: [scheduling()],
  });
  readonly batches: number[][] = [];
  handle!: EchoHandle;

  constructor(
    public fixedMs = 10,
    readonly perRowMs = 1,
  ) {
    benches.push(this);
  }

  async bind(config: ModelOptions = {}): Promise<this> {
    this.handle = this.triton.bind({
      modelName: "echo",
      inputs: echoInputs,
      outputs: echoOutputs,
      inferFunc: batch<typeof echoInputs, typeof echoOutputs>(async ({ x }) => {
        this.batches.push([...x.data]);
        const ms = this.fixedMs + this.perRowMs * x.shape[0]!;
        await new Promise<void>((done) => this.clock.setTimer(ms, done));
        return { y: x };
      }),
      config: { maxBatchSize: 16, batcher: deadlines(), ...config },
    });
    await this.handle.ready();
    return this;
  }

  /** Teaches the batcher how long batches take. */
  async teach(): Promise<this> {
    const { maxBatchSize } = this.handle.config();
    for (const most of [1, 8, 2, 12, 4, 16, 3, 10]) {
      const rows = Math.min(most, maxBatchSize);
      const sent = this.handle.inferBatch({ x: Array.from({ length: rows }, (_, i) => [i]) });
      await this.clock.advance(this.fixedMs + 20 * this.perRowMs);
      await sent;
    }
    this.batches.length = 0;
    return this;
  }

  send(value: number, options: InferOptions = {}): Promise<string> {
    return outcomeOf(echo(this.handle, value, options));
  }
}

afterEach(async () => {
  for (const bench of benches.splice(0)) {
    const closed = bench.triton.close();
    await bench.clock.advance(60_000);
    await closed;
  }
});

describe("deadlines", () => {
  it("run the request with the earliest deadline first", async () => {
    const bench = await (await new Bench(60, 0).bind({ maxBatchSize: 1 })).teach();
    const sent = [
      ...[1, 2, 3, 4].map((value) => bench.send(value, { timeoutMs: 5000 })),
      bench.send(5, { timeoutMs: 150 }),
    ];
    await bench.clock.settle();
    await bench.clock.advance(400);
    expect(await Promise.all(sent)).toEqual(["done", "done", "done", "done", "done"]);
    expect(bench.batches.flat()).toEqual([5, 1, 2, 3, 4]);
  });

  it("size a batch by its tightest member", async () => {
    const bench = await (await new Bench().bind()).teach();
    const blocker = bench.send(0);
    await bench.clock.advance(1);
    const loose = Array.from({ length: 15 }, (_, i) => bench.send(100 + i, { timeoutMs: 1000 }));
    const tight = bench.send(1, { timeoutMs: 28 });
    await bench.clock.advance(200);
    expect(await Promise.all([blocker, tight, ...loose])).toEqual(Array(17).fill("done"));
    const [, second] = bench.batches;
    expect(second![0]).toBe(1);
    expect(second!.length).toBeLessThanOrEqual(8);
  });

  it("refuse a request that cannot be in time before it costs anything, and say when to come again", async () => {
    const bench = await (await new Bench().bind()).teach();
    const running = bench.send(1);
    await bench.clock.advance(1);
    const error = await echo(bench.handle, 2, { timeoutMs: 15 }).catch((thrown) => thrown);
    expect(TritonError.is(error) && [error.code, error.reason]).toEqual([
      "UNAVAILABLE",
      "DEADLINE_TOO_CLOSE",
    ]);
    expect(error.message).toMatch(
      /Request for model 'echo' was refused: expected an answer within 15 ms, got an estimate of 2\d ms$/,
    );
    expect(error.retryAfterMs).toBeGreaterThan(0);
    await bench.clock.advance(50);
    expect(await running).toBe("done");
    expect(bench.batches).toEqual([[1]]);
  });

  it("are counted by level and outcome", async () => {
    const bench = await new Bench(20, 0).bind({ maxBatchSize: 1 });
    await bench.teach();
    const sent = [
      bench.send(1, { timeoutMs: 100, priority: 2 }),
      bench.send(2, { timeoutMs: 100, priority: 2 }),
      bench.send(3, { timeoutMs: 15 }),
    ];
    await bench.clock.advance(200);
    await Promise.all(sent);
    const lines = (await serviceOf(bench.triton).metrics()).split("\n");
    const count = (level: number, outcome: string) =>
      `tritonjs_deadline_total{model="echo",version="1",level="${level}",outcome="${outcome}"}`;
    expect(lines).toContain(`${count(2, "in_time")} 2`);
    expect(lines).toContain(`${count(0, "hopeless")} 1`);
    expect(lines).toContain(`${count(0, "late")} 0`);
  });

  it("are counted by the level that the model gives a request", async () => {
    const bench = await new Bench(1, 0).bind({
      maxBatchSize: 1,
      batcher: deadlines({ priorityLevels: 2, defaultPriorityLevel: 2 }),
    });
    for (const priority of [0, 1, 2, 9]) {
      const sent = bench.send(priority, { timeoutMs: 100, priority });
      await bench.clock.advance(10);
      expect(await sent).toBe("done");
    }
    const metrics = await serviceOf(bench.triton).metrics();
    expect(metrics.match(/(?<=deadline_total.*level=)"\d+",outcome="in_time"} \d+/g)).toEqual([
      '"1",outcome="in_time"} 1',
      '"2",outcome="in_time"} 3',
    ]);
  });

  it("are missed because of their own class if requests before them have its level by default", async () => {
    const bench = await new Bench(20, 0).bind({
      maxBatchSize: 1,
      batcher: deadlines({ priorityLevels: 2, defaultPriorityLevel: 2 }),
    });
    await bench.teach();
    const sent = Array.from({ length: 4 }, () => bench.send(1, { timeoutMs: 85 }));
    sent.push(bench.send(2, { timeoutMs: 95, priority: 2 }));
    await bench.clock.advance(200);
    await Promise.all(sent);
    const lines = (await serviceOf(bench.triton).metrics()).split("\n");
    expect(lines).toContain(
      'tritonjs_deadline_missed_total{model="echo",version="1",level="2",cause="queue"} 1',
    );
  });

  it("are counted by the first 64 priorities, where the model has no levels", async () => {
    const bench = await new Bench(1, 0).bind({ maxBatchSize: 1 });
    for (let priority = 1; priority <= 70; priority++) {
      const sent = bench.send(1, { timeoutMs: 100, priority });
      await bench.clock.advance(10);
      expect(await sent).toBe("done");
    }
    const lines = (await serviceOf(bench.triton).metrics()).split("\n");
    const inTime = lines.filter((line) => /^tritonjs_deadline_total.*"in_time"/.test(line));
    expect(inTime).toHaveLength(65);
    expect(inTime).toContain(
      'tritonjs_deadline_total{model="echo",version="1",level="0",outcome="in_time"} 6',
    );
  });

  it("are counted by caller too, for the first 64 callers of a level", async () => {
    const bench = await new Bench(1, 0).bind({ maxBatchSize: 1 });
    for (let i = 0; i < 70; i++) {
      const sent = bench.send(i, { timeoutMs: 100, parameters: { caller: i < 3 ? "gold" : `c${i}"` } });
      await bench.clock.advance(10);
      expect(await sent).toBe("done");
    }
    const lines = (await serviceOf(bench.triton).metrics()).split("\n");
    const count = (caller: string) =>
      `tritonjs_deadline_total{model="echo",version="1",level="0",caller="${caller}",outcome="in_time"}`;
    expect(lines).toContain(`${count("gold")} 3`);
    expect(lines).toContain(`${count('c65\\"')} 1`);
    expect(lines).toContain(`${count("(others)")} 4`);
  });

  it("tell in metrics when other models had the resources while a request waited", async () => {
    for (let seed = 1; seed <= 3; seed++) {
      const random = new SeededRandom(seed);
      const clock = new VirtualClock();
      const triton = new Triton({ clock, allowCpuMetrics: false, rateLimit: "execution_count" });
      const bind = (modelName: string, ms: number, config: ModelOptions) =>
        triton.bind({
          modelName,
          inputs: echoInputs,
          outputs: echoOutputs,
          inferFunc: batch<typeof echoInputs, typeof echoOutputs>(async ({ x }) => {
            await new Promise<void>((done) => clock.setTimer(ms, done));
            return { y: x };
          }),
          config: {
            maxBatchSize: 1,
            instanceGroup: { rateLimiter: { resources: [{ name: "gpu", count: 1, global: true }] } },
            ...config,
          },
        });
      const own = bind("own", 10 + random.below(20), { batcher: deadlines() });
      const other = bind("other", 300, {});
      await Promise.all([own.ready(), other.ready()]);
      for (let i = 0; i < 8; i++) {
        const sent = echo(own, 1);
        await clock.advance(50);
        await sent;
      }
      const blocks = echo(other, 1);
      await clock.advance(5);
      const late = outcomeOf(echo(own, 2, { timeoutMs: 100 + random.below(100) }));
      await clock.advance(400);
      expect(await late).toBe("UNAVAILABLE Request timeout expired");
      await blocks;
      expect((await serviceOf(triton).metrics()).split("\n")).toContain(
        'tritonjs_deadline_missed_total{model="own",version="1",level="0",cause="other_model"} 1',
      );
      await triton.close();
    }
  });

  it("refuse nothing while the model is cold", async () => {
    const bench = await new Bench(40, 0).bind({ maxBatchSize: 1 });
    const first = bench.send(1, { timeoutMs: 30 });
    const second = bench.send(2, { timeoutMs: 100 });
    await bench.clock.advance(200);
    expect(await first).toBe("UNAVAILABLE Request timeout expired");
    expect(await second).toBe("done");
  });

  it("try again after a while when a model seemed too slow", async () => {
    const bench = await (await new Bench(100, 0).bind({ maxBatchSize: 1 })).teach();
    bench.fixedMs = 5;
    expect(await bench.send(1, { timeoutMs: 50 })).toContain("was refused");
    await bench.clock.advance(2000);
    for (let i = 0; i < 20; i++) {
      const sent = bench.send(i, { timeoutMs: 50 });
      await bench.clock.advance(1100);
      expect(await sent).toBe("done");
    }
    const sent = [bench.send(1, { timeoutMs: 50 }), bench.send(2, { timeoutMs: 50 })];
    await bench.clock.advance(100);
    expect(await Promise.all(sent)).toEqual(["done", "done"]);
  });

  it("come from the timeout of a request, its priority level or the model", async () => {
    const bench = await new Bench(10, 0).bind({
      maxBatchSize: 1,
      batcher: deadlines({
        defaultMs: 400,
        priorityLevels: 2,
        defaultPriorityLevel: 2,
        priorityQueuePolicy: { 1: { defaultTimeoutMicroseconds: 200_000 } },
      }),
    });
    await bench.teach();
    const sent = [
      bench.send(4),
      bench.send(3, { timeoutMs: 300 }),
      bench.send(2, { priority: 1 }),
      bench.send(1, { queueTimeoutMicroseconds: 100_000 }),
    ];
    await bench.clock.advance(100);
    expect(await Promise.all(sent)).toEqual(["done", "done", "done", "done"]);
    expect(bench.batches.flat()).toEqual([1, 2, 3, 4]);
  });

  it("let requests without a deadline run when there is room, and a share of each batch once they waited long", async () => {
    const bench = await (await new Bench(20, 0).bind({ maxBatchSize: 4 })).teach();
    const patient = Array.from({ length: 3 }, (_, i) => bench.send(i));
    const steady: Promise<string>[] = [];
    for (let i = 0; i < 90; i++) {
      for (let k = 0; k < 4; k++) steady.push(bench.send(100, { timeoutMs: 60 }));
      await bench.clock.advance(20);
    }
    const outcomes = await Promise.all(patient);
    expect(outcomes).toEqual(["done", "done", "done"]);
    await bench.clock.advance(200);
    await Promise.all(steady);
  });

  it("let a request whose level delays instead of rejecting run after all others", async () => {
    const bench = await new Bench(20, 0).bind({
      maxBatchSize: 1,
      batcher: deadlines({
        priorityLevels: 1,
        defaultPriorityLevel: 1,
        priorityQueuePolicy: { 1: { defaultTimeoutMicroseconds: 30_000, timeoutAction: "DELAY" } },
      }),
    });
    await bench.teach();
    const sent = [1, 2, 3, 4].map((value) => bench.send(value));
    await bench.clock.advance(200);
    expect(await Promise.all(sent)).toEqual(["done", "done", "done", "done"]);
  });

  it("keep answers in the order in which requests ran, where that is asked for", async () => {
    const bench = await new Bench(10, 0).bind({
      maxBatchSize: 2,
      batcher: deadlines({ preserveOrdering: true }),
    });
    await bench.teach();
    const answers: number[] = [];
    for (const value of [1, 2, 3, 4, 5]) {
      void echo(bench.handle, value, { timeoutMs: 1000 - 100 * value }).then((y) => answers.push(y));
    }
    await bench.clock.advance(100);
    expect(answers).toEqual(bench.batches.flat());
    expect(answers).toEqual([5, 4, 3, 2, 1]);
  });

  it("hold for models that run each request alone", async () => {
    const bench = await new Bench(60, 0).bind({
      maxBatchSize: 4,
      batcher: false,
      parameters: { deadlines: "true" },
    });
    await bench.teach();
    const sent = [1, 2, 3].map((value) => bench.send(value, { timeoutMs: 5000 }));
    sent.push(bench.send(4, { timeoutMs: 100 }));
    await bench.clock.advance(500);
    expect(await Promise.all(sent)).toEqual(["done", "done", "done", "done"]);
    expect(bench.batches).toEqual([[4], [1], [2], [3]]);
  });

  it("limit the queue of a level as before", async () => {
    const bench = await new Bench(20, 0).bind({
      maxBatchSize: 1,
      batcher: deadlines({ defaultQueuePolicy: { maxQueueSize: 2 } }),
    });
    const sent = [1, 2, 3, 4].map((value) => bench.send(value, { timeoutMs: 1000 }));
    await bench.clock.advance(200);
    const outcomes = await Promise.all(sent);
    expect(outcomes.filter((outcome) => outcome.includes("Exceeds maximum queue size"))).toHaveLength(2);
  });

  it("have defaults by level and by caller in the configuration, which are checked", async () => {
    const bench = await new Bench().bind({
      batcher: deadlines({ levelMs: { 1: 50, 2: 500 }, callerMs: { gold: 100, "a=b": 200 } }),
    });
    expect(bench.handle.config().parameters).toEqual({
      deadlines: { stringValue: "true" },
      deadline_level_ms: { stringValue: "1=50, 2=500" },
      deadline_caller_ms: { stringValue: "gold=100, a=b=200" },
    });
    const bind = (parameters: Readonly<Record<string, string>>) =>
      thrownBy(() =>
        bench.triton.bind({
          modelName: "other",
          inputs: echoInputs,
          outputs: echoOutputs,
          inferFunc: batch<typeof echoInputs, typeof echoOutputs>(({ x }) => ({ y: x })),
          config: { parameters: { deadlines: "true", ...parameters } },
        }),
      );
    expect(bind({ deadline_level_ms: "high=50" })).toContain(
      "default deadline by level of model 'other': expected levels from 1 on with milliseconds above 0, got NaN=50",
    );
    expect(bind({ deadline_caller_ms: "gold" })).toContain(
      "parameter 'deadline_caller_ms' of model 'other': expected pairs such as gold=100, got 'gold'",
    );
    expect(bind({ deadline_caller_ms: "gold=0" })).toContain(
      "default deadline of caller 'gold' of model 'other': expected a number of milliseconds above 0, got 0",
    );
  });

  it("may come from the share of a request", async () => {
    const bench = await new Bench(60, 0).bind({
      maxBatchSize: 1,
      batcher: deadlines({
        callerMs: { short: 50 },
        shares: { by: ({ parameters }) => (parameters.urgent === true ? "short" : "long") },
      }),
    });
    await bench.teach();
    const sent = [bench.send(1), bench.send(2, { parameters: { urgent: true } })];
    await bench.clock.advance(200);
    expect(await Promise.all(sent)).toEqual(["done", expect.stringContaining("answer within 50 ms")]);
  });

  it("are part of the configuration, and exclude settings that contradict them", async () => {
    const bench = await new Bench().bind({ batcher: deadlines({ defaultMs: 50 }) });
    expect(bench.handle.config().parameters).toEqual({
      deadlines: { stringValue: "true" },
      deadline_default_ms: { stringValue: "50" },
    });
    const bind = (config: ModelOptions) =>
      thrownBy(() =>
        bench.triton.bind({
          modelName: "other",
          inputs: echoInputs,
          outputs: echoOutputs,
          inferFunc: batch<typeof echoInputs, typeof echoOutputs>(({ x }) => ({ y: x })),
          config,
        }),
      );
    expect(bind({ batcher: deadlines({ defaultMs: 9, targetLatencyMs: 5 }) })).toContain(
      "model 'other' has a target latency and a default deadline, which are the same: leave one of them out",
    );
    expect(bind({ batcher: deadlines({ defaultMs: -1 }) })).toContain(
      "default deadline of model 'other': expected a number of milliseconds above 0, got -1",
    );
    expect(bind({ parameters: { deadlines: "perhaps" } })).toContain(
      "parameter 'deadlines' of model 'other': expected true or false, got 'perhaps'",
    );
    expect(bind({ parameters: { deadlines: "true" }, batcher: { batchBy: () => 1 } })).toContain(
      "model 'other' has two batchers, 'batchBy' and 'deadlines': leave one of them out",
    );
  });
});

describe("deadlines in an ensemble", () => {
  it("leave a step what is left of the time, less what later steps need", async () => {
    const bench = await new Bench(10, 0).bind({ maxBatchSize: 1 });
    await bench.teach();
    bench.triton.bind({
      modelName: "slow",
      inputs: echoInputs,
      outputs: echoOutputs,
      inferFunc: batch<typeof echoInputs, typeof echoOutputs>(async ({ x }) => {
        await new Promise<void>((done) => bench.clock.setTimer(100, done));
        return { y: x };
      }),
      config: { maxBatchSize: 1 },
    });
    const both = bench.triton.bindEnsemble({
      modelName: "both",
      inputs: echoInputs,
      outputs: [{ name: "z", dtype: "INT32", shape: [1] }],
      steps: [
        { modelName: "echo", inputMap: { x: "x" }, outputMap: { y: "y" } },
        { modelName: "slow", inputMap: { x: "y" }, outputMap: { y: "z" } },
      ],
      config: { maxBatchSize: 1 },
    });
    await both.ready();
    for (let i = 0; i < 40; i++) {
      const sent = both.inferSample({ x: [i] }, { timeoutMs: 1000 });
      await bench.clock.advance(150);
      await sent;
    }
    // The step itself takes 10 ms, which 80 ms allow; the step after it does not.
    const hopeless = outcomeOf(both.inferSample({ x: [1] }, { timeoutMs: 80 }));
    await bench.clock.settle();
    expect(await hopeless).toContain("Request for model 'echo' was refused");
    bench.batches.length = 0;
    const sent = [
      bench.send(7),
      bench.send(1, { timeoutMs: 150 }),
      both.inferSample({ x: [2] }, { timeoutMs: 200 }).then(() => "done"),
    ];
    await bench.clock.advance(300);
    expect(await Promise.all(sent)).toEqual(["done", "done", "done"]);
    // 200 ms, less the 100 ms of the later step, are less than 150 ms.
    expect(bench.batches.flat()).toEqual([2, 1, 7]);
  });
});

describe("under random loads, deadlines", () => {
  it.each([1, 2, 3])("end each request once, and none after it was refused (seed %i)", async (seed) => {
    const random = new SeededRandom(seed);
    const bench = await new Bench(random.below(20), 0.2 + random.next()).bind({
      maxBatchSize: 1 + random.below(16),
      batcher: deadlines({ ...(random.chance(0.5) && { maxQueueDelayMicroseconds: 5000 }) }),
    });
    const outcomes: string[] = [];
    let sent = 0;
    for (let i = 0; i < 300; i++) {
      const controller = new AbortController();
      const limits = [undefined, 5, 20, 60, 300];
      const timeoutMs = limits[random.below(limits.length)];
      const options = { signal: controller.signal, ...(timeoutMs !== undefined && { timeoutMs }) };
      sent++;
      const value = i;
      const startedAt = bench.clock.now();
      void echo(bench.handle, value, options).then(
        (y) => {
          outcomes.push("answer");
          expect(y).toBe(value);
          if (timeoutMs !== undefined) expect(bench.clock.now() - startedAt).toBeLessThanOrEqual(timeoutMs);
        },
        (error) => outcomes.push(error.code),
      );
      if (random.chance(0.1)) controller.abort();
      if (random.chance(0.5)) await bench.clock.advance(random.below(12));
    }
    await bench.clock.advance(60_000);
    expect(outcomes).toHaveLength(sent);
    expect(bench.handle.queue().queued).toBe(0);
    expect(new Set(outcomes)).toEqual(new Set(["answer", "UNAVAILABLE", "CANCELLED"]));
  });
});
