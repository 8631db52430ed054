import { batch, Triton } from "@tritonjs/core";
import {
  explainRequest,
  recordScheduling,
  replayScheduling,
  type SchedulingRecordingOptions,
  Tape,
  timelineOf,
} from "@tritonjs/operations/time-travel";
import { configuredBatchers, scheduling } from "@tritonjs/scheduling";
import { VirtualClock } from "@tritonjs/testing";
import { describe, expect, test } from "vitest";
import { CASES, type LoadKind, recordedLoad } from "./recorded-load.js";

describe("replay", () => {
  test.for(Object.keys(CASES) as LoadKind[])(
    "replays a recorded load to the same batches: %s",
    async (kind) => {
      const tape = await recordedLoad(kind, { seed: 7, count: 40 });
      const replay = await replayScheduling(tape, { batcherOf: configuredBatchers() });
      expect(replay).toMatchObject({ identical: true, difference: undefined });
      expect(replay.batches).toBeGreaterThan(5);
      expect(replay.requests).toBeGreaterThan(20);
    },
  );
});

/** A model that takes 10 ms, on a virtual clock, whose scheduling is recorded. */
async function recordedModel(options: SchedulingRecordingOptions, parameters: Record<string, string> = {}) {
  const clock = new VirtualClock();
  const recording = recordScheduling({ keep: "last", ...options });
  const triton = new Triton({ clock, extensions: [recording, scheduling()] });
  const model = triton.bind({
    modelName: "slow",
    inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
    inferFunc: batch(async ({ x }) => {
      await new Promise<void>((resolve) => clock.setTimer(10, resolve));
      return { y: x };
    }),
    config: { maxBatchSize: 4, parameters },
  });
  await triton.ready();
  const sent: Promise<unknown>[] = [];
  /** Sends a request every `gapMs` for some time. */
  const send = async (count: number, gapMs: number) => {
    for (let i = 0; i < count; i++) {
      sent.push(model.inferSample({ x: [1] }, { id: `r${sent.length}` }));
      await clock.advance(gapMs);
    }
  };
  const tape = () => Tape.from(recording.bytes());
  return { recording, send, tape, settled: () => Promise.all(sent) };
}

/** Kinds whose schedulers keep nothing while nothing waits or runs. */
const FORGETFUL: readonly LoadKind[] = [
  ...(["direct", "eager", "delay", "shapes"] as const),
  ...(["levels", "answers in order", "delayed ones last", "groups"] as const),
];

describe("ring", () => {
  test("keeps at least the last seconds, and replays them from the first kept moment", async () => {
    const { recording, send, tape, settled } = await recordedModel({ seconds: 10 });
    await send(300, 100);
    await settled();
    const replay = await replayScheduling(tape(), { batcherOf: configuredBatchers() });
    expect(replay).toMatchObject({ identical: true, difference: undefined, fromMs: 0 });
    const { requests, durationMs } = timelineOf(tape());
    expect(durationMs).toBeGreaterThanOrEqual(10_000);
    expect(durationMs).toBeLessThan(15_000);
    expect(replay.requests).toBe(requests.length);
    expect(requests[0]).toMatchObject({ number: 0, id: `r${300 - requests.length}`, batch: 0 });
    expect(explainRequest(timelineOf(tape()), "r299").computeMs).toBe(10);
    expect(recording.byteLength).toBeLessThan(100_000);
  });

  test("replays from the first moment of rest, and explains what came before", async () => {
    const { send, tape, settled } = await recordedModel({ seconds: 1 });
    // Never at rest for 3 s.
    await send(600, 5);
    const busy = tape();
    await expect(replayScheduling(busy, { batcherOf: configuredBatchers() })).rejects.toThrow(
      /cannot be replayed: expected a moment at which nothing/,
    );
    expect(explainRequest(timelineOf(busy), "r500").batch?.rows).toBe(2);
    await send(20, 50);
    await settled();
    const replay = await replayScheduling(tape(), { batcherOf: configuredBatchers() });
    expect(replay).toMatchObject({ identical: true, difference: undefined });
    expect(replay.fromMs).toBeGreaterThan(0);
    expect(replay.requests).toBeLessThan(timelineOf(tape()).requests.length);
  });

  test("stays below its size", async () => {
    const { recording, send, tape, settled } = await recordedModel({ seconds: 3600, maxBytes: 64 * 1024 });
    for (let i = 0; i < 5; i++) {
      await send(200, 5);
      expect(recording.byteLength).toBeLessThan(64 * 1024 * 1.3);
    }
    await send(1, 100);
    await settled();
    expect(timelineOf(tape()).requests.length).toBeGreaterThan(50);
  });

  test("does not replay a model that learns once the beginning is dropped", async () => {
    const { send, tape, settled } = await recordedModel({ seconds: 10 }, { deadlines: "true" });
    await send(50, 100);
    expect(await replayScheduling(tape(), { batcherOf: configuredBatchers() })).toMatchObject({
      identical: true,
      fromMs: 0,
    });
    await send(200, 100);
    await settled();
    await expect(replayScheduling(tape(), { batcherOf: configuredBatchers() })).rejects.toThrow(
      /models that neither learn nor have sequences/,
    );
  });

  test("refuses another value of keep", () => {
    expect(() => recordScheduling({ keep: "middle" as never })).toThrow(
      'recordScheduling keep: expected "first" or "last", got middle',
    );
  });

  test.for(FORGETFUL)(
    "replays the end of a load from a moment of rest to the same batches: %s",
    async (kind) => {
      const recording = recordScheduling({ keep: "last", maxBytes: 8 * 1024 });
      const tape = await recordedLoad(kind, { seed: 3, count: 80, tape: recording, resting: true });
      const replay = await replayScheduling(tape, { batcherOf: configuredBatchers() });
      expect(replay).toMatchObject({ identical: true, difference: undefined });
      expect(replay.requests).toBeGreaterThan(0);
      expect(replay.requests).toBeLessThan(80);
    },
  );
});
