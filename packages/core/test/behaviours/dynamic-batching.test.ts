import { batch, type InferOptions, type ModelOptions, Triton } from "@tritonjs/core";
import { serviceOf } from "@tritonjs/server";
import { VirtualClock, withSchedulerDelay } from "@tritonjs/testing";
import { afterEach, describe, expect, it, vi } from "vitest";
import { EchoModel, echo } from "../../../../test/support/echo-model.js";
import { outcomeOf, outcomesOf } from "../../../../test/support/outcome.js";

describe("dynamic batching", () => {
  async function served(config: Parameters<EchoModel["bind"]>[1] = {}, instances = 1) {
    const clock = new VirtualClock();
    const model = new EchoModel();
    const handle = await model.bind(new Triton({ clock }), config, instances);
    return { clock, model, handle };
  }

  afterEach(() => void vi.unstubAllEnvs());

  describe("the dynamic batcher without a delay", () => {
    it("runs requests of one turn of the event loop as one batch", async () => {
      const { clock, model, handle } = await served();
      const answers = [1, 2, 3].map((value) => echo(handle, value));
      await clock.settle();
      expect(model.batches).toEqual([[1, 2, 3]]);
      expect(await Promise.all(answers)).toEqual([1, 2, 3]);
    });

    it("lets no request wait while an instance is idle", async () => {
      const { clock, model, handle } = await served();
      await Promise.all([echo(handle, 1), clock.settle()]);
      await Promise.all([echo(handle, 2), clock.settle()]);
      expect([model.batches, clock.now()]).toEqual([[[1], [2]], 0]);
    });

    it("extends the next batch until an instance takes it", async () => {
      const { clock, model, handle } = await served();
      model.held = true;
      for (const value of [1, 2, 3, 4]) {
        void echo(handle, value);
        await clock.settle();
      }
      expect(model.batches).toEqual([[1]]);
      model.release();
      await clock.settle();
      expect(model.batches).toEqual([[1], [2, 3, 4]]);
    });

    it("never exceeds the largest batch size", async () => {
      const { clock, model, handle } = await served({ maxBatchSize: 3 });
      model.held = true;
      for (let value = 0; value < 20; value++) void echo(handle, value);
      await clock.settle();
      model.releaseAll();
      await clock.settle();
      expect(model.batches.map((rows) => rows.length)).toEqual([3, 3, 3, 3, 3, 3, 2]);
      expect(model.batches.flat()).toEqual(Array.from({ length: 20 }, (_, value) => value));
    });

    it("keeps the rows of one request together and cuts before a request that does not fit", async () => {
      const { clock, model, handle } = await served({ maxBatchSize: 4 });
      const three = handle.inferBatch({ x: [[1], [2], [3]] });
      const two = handle.inferBatch({ x: [[4], [5]] });
      const one = handle.inferBatch({ x: [[6]] });
      await clock.settle();
      expect(model.batches).toEqual([
        [1, 2, 3],
        [4, 5, 6],
      ]);
      const answers = await Promise.all([three, two, one]);
      expect(answers.map(({ y }) => [y.shape, [...y.data]])).toEqual([
        [
          [3, 1],
          [1, 2, 3],
        ],
        [
          [2, 1],
          [4, 5],
        ],
        [[1, 1], [6]],
      ]);
    });

    it("counts cancelled and expired requests towards that number", async () => {
      const clock = new VirtualClock();
      const model = new EchoModel();
      const handle = await model.bind(withSchedulerDelay({ requests: 3 }, () => new Triton({ clock })));
      const given = new AbortController();
      const lost = outcomesOf([echo(handle, 1, { signal: given.signal }), echo(handle, 2, { timeoutMs: 1 })]);
      await clock.settle();
      given.abort();
      await clock.advance(1);
      expect((await lost).map((outcome) => outcome.split(" ")[0])).toEqual(["CANCELLED", "UNAVAILABLE"]);
      void echo(handle, 3);
      await clock.settle();
      expect(model.batches).toEqual([[3]]);
    });

    it("takes the number from TRITONSERVER_DELAY_SCHEDULER unless the testing entry sets another one", async () => {
      vi.stubEnv("TRITONSERVER_DELAY_SCHEDULER", "2");
      const { clock, model, handle } = await served();
      const told = new EchoModel();
      const other = await told.bind(withSchedulerDelay({}, () => new Triton({ clock })));
      void echo(handle, 1);
      void echo(other, 1);
      await clock.advance(1000);
      expect([model.batches, told.batches]).toEqual([[], [[1]]]);
      void echo(handle, 2);
      await clock.settle();
      expect(model.batches).toEqual([[1, 2]]);
    });

    it("does not wait when that variable is not a number", async () => {
      vi.stubEnv("TRITONSERVER_DELAY_SCHEDULER", "many");
      const { clock, model, handle } = await served();
      void echo(handle, 1);
      await clock.settle();
      expect(model.batches).toEqual([[1]]);
    });
  });

  describe("a queue delay", () => {
    const delayed = { batcher: { maxQueueDelayMicroseconds: 5000 } };

    it("is how long the oldest request waits for others", async () => {
      const { clock, model, handle } = await served(delayed);
      void echo(handle, 1);
      await clock.advance(3);
      void echo(handle, 2);
      await clock.advance(1.9);
      expect(model.batches).toEqual([]);
      await clock.advance(0.1);
      expect(model.batches).toEqual([[1, 2]]);
    });

    it("ends when a batch of a preferred size is complete", async () => {
      const { clock, model, handle } = await served({
        batcher: { ...delayed.batcher, preferredBatchSize: [2] },
      });
      void echo(handle, 1);
      await clock.advance(1);
      void echo(handle, 2);
      await clock.settle();
      expect([model.batches, clock.now()]).toEqual([[[1, 2]], 1]);
    });

    it("starts anew for each batch", async () => {
      const { clock, model, handle } = await served(delayed);
      void echo(handle, 1);
      await clock.advance(5);
      void echo(handle, 2);
      await clock.advance(4);
      expect(model.batches).toEqual([[1]]);
      await clock.advance(1);
      expect(model.batches).toEqual([[1], [2]]);
    });

    it("restarts from the next oldest request when the oldest is cancelled", async () => {
      const { clock, model, handle } = await served(delayed);
      const giveUp = new AbortController();
      const first = echo(handle, 1, { signal: giveUp.signal });
      await clock.advance(3);
      void echo(handle, 2);
      giveUp.abort();
      await expect(first).rejects.toMatchObject({ code: "CANCELLED" });
      await clock.advance(4.9);
      expect(model.batches).toEqual([]);
      await clock.advance(0.1);
      expect(model.batches).toEqual([[2]]);
    });
  });

  describe("ordered responses", () => {
    it("wait for earlier requests that run in another instance", async () => {
      for (const preserveOrdering of [true, false]) {
        const { clock, model, handle } = await served({ maxBatchSize: 1, batcher: { preserveOrdering } }, 2);
        const answered: number[] = [];
        model.held = true;
        void echo(handle, 1).then((value) => answered.push(value));
        await clock.settle();
        model.held = false;
        void echo(handle, 2).then((value) => answered.push(value));
        await clock.settle();
        expect(model.batches).toEqual([[1], [2]]);
        expect(answered).toEqual(preserveOrdering ? [] : [2]);
        model.releaseAll();
        await clock.settle();
        expect(answered).toEqual(preserveOrdering ? [1, 2] : [2, 1]);
      }
    });
  });

  describe("a response held back by earlier requests", () => {
    /** The first request runs forever, the second is answered in another instance. */
    async function held(options: InferOptions) {
      const config = { maxBatchSize: 1, batcher: { preserveOrdering: true } };
      const { clock, model, handle } = await served(config, 2);
      model.held = true;
      const first = outcomeOf(echo(handle, 1));
      await clock.settle();
      model.held = false;
      const second = outcomeOf(echo(handle, 2, options));
      await clock.settle();
      expect(model.batches).toEqual([[1], [2]]);
      return { clock, model, handle, first, second };
    }

    it("can still be cancelled", async () => {
      const giveUp = new AbortController();
      const { clock, model, handle, first, second } = await held({ signal: giveUp.signal });
      giveUp.abort();
      expect(await second).toContain("CANCELLED");
      model.releaseAll();
      await clock.settle();
      expect(await first).toBe("done");
      expect(handle.statistics().inferenceStats).toMatchObject({ success: { count: 1 }, fail: { count: 1 } });
    });

    it("can still time out", async () => {
      const { clock, model, first, second } = await held({ timeoutMs: 5 });
      await clock.advance(5);
      expect(await second).toBe("UNAVAILABLE Request timeout expired");
      model.releaseAll();
      await clock.settle();
      expect(await first).toBe("done");
    });

    it("is awaited when the model stops", async () => {
      const { clock, model, handle, first, second } = await held({});
      const unbound = handle.unbind();
      await clock.settle();
      model.releaseAll();
      await clock.settle();
      await unbound;
      expect([await first, await second]).toEqual(["done", "done"]);
    });
  });
});

async function served(config: ModelOptions = {}) {
  const clock = new VirtualClock();
  const model = new EchoModel();
  const triton = new Triton({ clock });
  const handle = await model.bind(triton, config);
  const reasons = () => handle.queue().recentCuts.map(({ reason, batchSize }) => `${reason} ${batchSize}`);
  return { clock, model, triton, handle, reasons };
}

describe("the reason for cutting a batch", () => {
  it("is INSTANCE when an instance took all waiting requests", async () => {
    const { clock, handle, reasons } = await served();
    for (const value of [1, 2]) void echo(handle, value);
    await clock.settle();
    expect(reasons()).toEqual(["INSTANCE 2"]);
  });

  it("is SIZE for full batches, listed latest first", async () => {
    const { clock, handle, reasons } = await served();
    for (let value = 0; value < 9; value++) void echo(handle, value);
    await clock.settle();
    expect(reasons()).toEqual(["INSTANCE 1", "SIZE 4", "SIZE 4"]);
  });

  it("is PREFERRED, and DELAY for the rest", async () => {
    const batcher = { preferredBatchSize: [2], maxQueueDelayMicroseconds: 5000 };
    const { clock, handle, reasons } = await served({ batcher });
    for (const value of [1, 2, 3]) void echo(handle, value);
    await clock.advance(5);
    expect(reasons()).toEqual(["DELAY 1", "PREFERRED 2"]);
  });

  it("is FLUSH when the model stops before the delay is over", async () => {
    const { clock, handle, reasons } = await served({ batcher: { maxQueueDelayMicroseconds: 5000 } });
    const answer = echo(handle, 1);
    await clock.advance(1);
    const unbound = handle.unbind();
    await Promise.all([clock.settle(), answer, unbound]);
    expect(reasons()).toEqual(["FLUSH 1"]);
  });

  it("is SHAPE where the next request differs", async () => {
    const clock = new VirtualClock();
    const handle = new Triton({ clock }).bind({
      modelName: "any",
      inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
      inferFunc: batch(({ x }) => ({ y: x })),
    });
    await handle.ready();
    void handle.inferSample({ x: [1] });
    void handle.inferSample({ x: [1, 2] });
    await clock.settle();
    expect(handle.queue().recentCuts.map(({ reason }) => reason)).toEqual(["INSTANCE", "SHAPE"]);
  });

  it("is counted in a metric by reason, for models with a batcher", async () => {
    const { clock, handle, triton } = await served();
    const alone = await new EchoModel().bind(new Triton(), { batcher: false });
    for (let value = 0; value < 5; value++) void echo(handle, value);
    await clock.settle();
    const lines = (await serviceOf(triton).metrics())
      .split("\n")
      .filter((line) => line.startsWith("tritonjs_"));
    expect(lines).toContain('tritonjs_batch_cut_total{model="echo",version="1",reason="SIZE"} 1');
    expect(lines).toContain('tritonjs_batch_cut_total{model="echo",version="1",reason="INSTANCE"} 1');
    expect(lines).toContain('tritonjs_batch_cut_total{model="echo",version="1",reason="DELAY"} 0');
    expect(alone.queue().recentCuts).toEqual([]);
  });
});

describe("a snapshot of the queue", () => {
  it("shows waiting requests with their place and time, and running ones, without changing anything", async () => {
    const batcher = { priorityLevels: 2, defaultPriorityLevel: 2 };
    const { clock, model, triton, handle } = await served({ batcher, maxBatchSize: 2 });
    model.held = true;
    void echo(handle, 0);
    await clock.advance(2);
    for (const value of [1, 2]) void echo(handle, value);
    await clock.advance(3);
    void echo(handle, 3, { priority: 1 });
    await clock.advance(1);
    const snapshot = handle.queue();
    expect(snapshot).toMatchObject({
      queued: 3,
      levels: [
        { priorityLevel: 1, queued: 1, delayed: 0, rows: 1, oldestAgeMicroseconds: 1000 },
        { priorityLevel: 2, queued: 2, delayed: 0, rows: 2, oldestAgeMicroseconds: 4000 },
      ],
      payloads: [],
      instances: [
        { running: [{ requests: 1, rows: 1, ageMicroseconds: 6000, cut: "INSTANCE" }], waiting: [] },
      ],
      cuts: { INSTANCE: 1, SIZE: 0 },
      recentCuts: [{ reason: "INSTANCE", batchSize: 1 }],
    });
    expect(handle.queue()).toEqual(snapshot);
    expect(serviceOf(triton).queue("echo", "")).toEqual(snapshot);
    model.releaseAll();
    await clock.settle();
    expect(handle.queue()).toMatchObject({ queued: 0, levels: [], instances: [{ running: [] }] });
  });

  it("shows the batches that were formed ahead", async () => {
    const { clock, model, handle } = await served({ maxBatchSize: 2 });
    model.held = true;
    for (const value of [0, 1]) void echo(handle, value);
    await clock.advance(1);
    for (const value of [2, 3, 4]) void echo(handle, value);
    await clock.settle();
    expect(handle.queue()).toMatchObject({
      queued: 0,
      payloads: [
        { requests: 2, rows: 2, cut: "SIZE" },
        { requests: 1, rows: 1, cut: "INSTANCE" },
      ],
    });
    model.releaseAll();
    await clock.settle();
  });
});
