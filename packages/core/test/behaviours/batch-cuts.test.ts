import { batch, type ModelOptions, Triton } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/core/testing";
import { describe, expect, it } from "vitest";
import { EchoModel, echo } from "../../../../test/support/echo-model.js";

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
    const lines = (await triton.service.metrics()).split("\n").filter((line) => line.startsWith("tritonjs_"));
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
    expect(triton.service.queue("echo", "")).toEqual(snapshot);
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
