import { batch, type ModelOptions, Triton, type TritonError } from "@tritonjs/core";
import { deadlines, scheduling } from "@tritonjs/scheduling";
import { serviceOf } from "@tritonjs/server";
import { VirtualClock } from "@tritonjs/testing";
import { describe, expect, it } from "vitest";
import { type EchoHandle, echo, echoInputs, echoOutputs } from "../../../test/support/echo-model.js";
import { outcomeOf } from "../../../test/support/outcome.js";

const FIXED_MS = 10;
const PER_ROW_MS = 1;
const TARGET_MS = 50;

/** A model whose batches take 10 ms plus 1 ms a row, with a target of 50 ms. */
class Bench {
  readonly clock = new VirtualClock();
  readonly triton = new Triton({
    clock: this.clock,
    allowCpuMetrics: false,
    extensions: [scheduling()],
  });
  /** Rows and start time of each batch. */
  readonly batches: { rows: number; at: number }[] = [];
  readonly latenciesMs: number[] = [];
  handle!: EchoHandle;

  async bind(config: ModelOptions = {}, instances = 1): Promise<this> {
    const run = batch<typeof echoInputs, typeof echoOutputs>(async ({ x }) => {
      this.batches.push({ rows: x.shape[0]!, at: this.clock.now() });
      await new Promise<void>((done) => this.clock.setTimer(FIXED_MS + PER_ROW_MS * x.shape[0]!, done));
      return { y: x };
    });
    const given = config.batcher || {};
    const batcher = "open" in given ? given : deadlines({ targetLatencyMs: TARGET_MS, ...given });
    this.handle = this.triton.bind({
      modelName: "echo",
      inputs: echoInputs,
      outputs: echoOutputs,
      inferFunc: Array.from({ length: instances }, () => run),
      config: { maxBatchSize: 16, ...config, batcher },
    });
    await this.handle.ready();
    return this;
  }

  /** Teaches the batcher with batches of several sizes and an even flow of requests; leaves it idle. */
  async teach(everyMs = 4): Promise<this> {
    for (const rows of [1, 8, 2, 12, 4, 16, 3, 10]) {
      const sent = this.handle.inferBatch({ x: Array.from({ length: rows }, (_, i) => [i]) });
      await this.clock.advance(100);
      await sent;
    }
    for (let i = 0; i < 200; i++) await this.send(0, everyMs);
    await this.clock.advance(200);
    this.batches.length = 0;
    this.latenciesMs.length = 0;
    return this;
  }

  /** Sends a request and advances the time. */
  async send(value: number, thenMs: number, options = {}): Promise<void> {
    const start = this.clock.now();
    void echo(this.handle, value, options).then(
      () => this.latenciesMs.push(this.clock.now() - start),
      () => {},
    );
    await this.clock.advance(thenMs);
  }

  /** Sends requests all at once and resolves with their outcomes. */
  sendAll(count: number, options = {}): Promise<string[]> {
    return Promise.all(Array.from({ length: count }, (_, i) => outcomeOf(echo(this.handle, i, options))));
  }
}

describe("a target latency", () => {
  it("lets requests to an idle instance wait for each other, and answers them in time", async () => {
    const bench = await (await new Bench().bind()).teach();
    for (let i = 0; i < 50; i++) await bench.send(i, 4);
    await bench.clock.advance(100);
    expect(bench.latenciesMs).toHaveLength(50);
    expect(Math.max(...bench.latenciesMs)).toBeLessThanOrEqual(TARGET_MS);
    expect(bench.batches.length).toBeLessThan(10);
    expect(bench.handle.queue().cuts.POLICY).toBeGreaterThan(0);
  });

  it("lets no request wait before durations are known", async () => {
    const bench = await new Bench().bind();
    await bench.send(1, 0);
    expect(bench.batches).toEqual([{ rows: 1, at: 0 }]);
  });

  it("lets no request wait when requests are rare", async () => {
    const bench = await (await new Bench().bind()).teach(1000);
    await bench.send(1, 100);
    expect(bench.latenciesMs).toEqual([FIXED_MS + PER_ROW_MS]);
  });

  it("ends the wait of others for a request with an earlier deadline", async () => {
    const bench = await (await new Bench().bind()).teach();
    const start = bench.clock.now();
    await bench.send(1, 2);
    await bench.send(2, 100, { timeoutMs: 20 });
    expect(bench.batches[0]!.rows).toBe(2);
    expect(bench.batches[0]!.at - start).toBeLessThanOrEqual(10);
    expect(bench.latenciesMs).toHaveLength(2);
  });

  it("runs waiting requests at once when the model is stopped", async () => {
    const bench = await (await new Bench().bind()).teach();
    const sent = echo(bench.handle, 7);
    await bench.clock.settle();
    expect(bench.batches).toEqual([]);
    const start = bench.clock.now();
    const closed = bench.triton.close();
    await bench.clock.settle();
    expect(bench.batches).toEqual([{ rows: 1, at: start }]);
    await bench.clock.advance(20);
    expect(await sent).toBe(7);
    await closed;
  });

  it("leaves nothing behind when a waiting request is cancelled", async () => {
    const bench = await (await new Bench().bind()).teach();
    const controller = new AbortController();
    const sent = outcomeOf(echo(bench.handle, 1, { signal: controller.signal }));
    await bench.clock.settle();
    controller.abort();
    expect(await sent).toContain("CANCELLED");
    await bench.clock.advance(100);
    expect(bench.batches).toEqual([]);
    expect(bench.handle.queue().levels).toEqual([]);
  });
});

describe("admission with a target latency", () => {
  it("rejects requests that would be late, with a retry time", async () => {
    const bench = await (await new Bench().bind()).teach();
    const errors: TritonError[] = [];
    for (let i = 0; i < 100; i++) {
      void echo(bench.handle, i).catch((error) => errors.push(error));
      await bench.clock.settle();
    }
    await bench.clock.advance(200);
    expect(errors.length).toBeGreaterThan(40);
    expect(errors.length).toBeLessThan(100);
    for (const error of errors) {
      expect(error.code).toBe("UNAVAILABLE");
      expect(error.message).toMatch(
        /^Request for model 'echo' was refused: expected an answer within 50 ms, got an estimate of \d+ ms$/,
      );
      expect(error.retryAfterMs).toBeGreaterThan(0);
      expect(error.retryAfterMs).toBeLessThan(50);
    }
  });

  it("answers admitted requests in time once the batcher has seen overload", async () => {
    const bench = await (await new Bench().bind()).teach();
    for (let i = 0; i < 1000; i++) await bench.send(i, 0.5);
    bench.latenciesMs.length = 0;
    for (let i = 0; i < 1500; i++) await bench.send(i, 0.5);
    await bench.clock.advance(200);
    expect(bench.latenciesMs.length).toBeGreaterThan(350);
    expect(bench.latenciesMs.length).toBeLessThan(600);
    const late = bench.latenciesMs.filter((ms) => ms > TARGET_MS);
    expect(late.length / bench.latenciesMs.length).toBeLessThan(0.03);
    expect(Math.max(...bench.latenciesMs)).toBeLessThan(1.5 * TARGET_MS);
  });

  it("uses a request's own deadline instead of the target", async () => {
    const bench = await (await new Bench().bind()).teach();
    const first = bench.sendAll(100);
    const patient = bench.sendAll(1, { timeoutMs: 5000 });
    const hasty = bench.sendAll(1, { timeoutMs: 5 });
    await bench.clock.advance(500);
    expect((await first).at(-1)).toContain("UNAVAILABLE");
    expect(await patient).toEqual(["done"]);
    expect((await hasty)[0]).toMatch(
      /UNAVAILABLE .* was refused: expected an answer within 5 ms, got an estimate of \d+ ms$/,
    );
  });

  it("always admits a request to an idle instance", async () => {
    const bench = await (await new Bench().bind({ batcher: deadlines({ targetLatencyMs: 5 }) })).teach();
    const sent = bench.sendAll(1);
    await bench.clock.advance(20);
    expect(await sent).toEqual(["done"]);
  });

  it("counts rejected requests as rejected", async () => {
    const bench = await (await new Bench().bind()).teach();
    const outcomes = bench.sendAll(100);
    await bench.clock.advance(300);
    const refused = (await outcomes).filter((text) => text !== "done").length;
    expect(bench.handle.statistics().inferenceStats.fail.count).toBe(refused);
    const page = await serviceOf(bench.triton).metrics();
    expect(page).toMatch(new RegExp(`nv_inference_request_failure\\{.*reason="REJECTED".*\\} ${refused}\n`));
  });

  it("admits more requests with several instances", async () => {
    const letIn = async (instances: number): Promise<number> => {
      const bench = await (await new Bench().bind({}, instances)).teach();
      const outcomes = bench.sendAll(200);
      await bench.clock.advance(400);
      return (await outcomes).filter((text) => text === "done").length;
    };
    expect(await letIn(3)).toBeGreaterThan(2 * (await letIn(1)));
  });

  it("keeps the size limit of the queue", async () => {
    const batcher = { defaultQueuePolicy: { maxQueueSize: 4 } };
    const bench = await (await new Bench().bind({ batcher })).teach();
    const outcomes = bench.sendAll(10);
    await bench.clock.advance(300);
    expect((await outcomes).filter((text) => text.includes("Exceeds maximum queue size"))).toHaveLength(6);
  });
});

describe("the target latency option", () => {
  const problems = (config: ModelOptions): string => {
    try {
      new Triton({ extensions: [scheduling()] }).bind({
        modelName: "m",
        inputs: echoInputs,
        outputs: echoOutputs,
        inferFunc: batch<typeof echoInputs, typeof echoOutputs>(({ x }) => ({ y: x })),
        config,
      });
      return "";
    } catch (error) {
      return (error as Error).message;
    }
  };

  it("is shown as a parameter and read from it", async () => {
    const bench = await new Bench().bind({ parameters: { other: "1" } });
    expect(bench.handle.config().parameters).toEqual({
      other: { stringValue: "1" },
      target_latency_ms: { stringValue: "50" },
    });
    expect(problems({ parameters: { target_latency_ms: "soon" } })).toContain(
      "target latency of model 'm': expected a number of milliseconds above 0, got NaN",
    );
  });

  it("is rejected with all problems at once", () => {
    const text = problems({
      decoupled: true,
      batcher: deadlines({ targetLatencyMs: 0, maxQueueDelayMicroseconds: 100, preferredBatchSize: [2] }),
    });
    expect(text).toContain("target latency of model 'm': expected a number of milliseconds above 0, got 0");
    expect(text).toContain(
      "model 'm' has a target latency and the 'decoupled' transaction policy: it can have one of them",
    );
    for (const key of ["maxQueueDelayMicroseconds", "preferredBatchSize"]) {
      expect(text).toContain(
        `config.batcher.${key} and config.batcher.targetLatencyMs are both given: leave one of them out`,
      );
    }
  });

  it("is rejected for a model without the dynamic batcher", () => {
    expect(problems({ batcher: false, parameters: { target_latency_ms: "5" } })).toContain(
      "model 'm' has a target latency without the dynamic batcher: set dynamic_batching",
    );
  });
});
