import { describe, expect, it } from "vitest";
import type { SessionConcurrencyLevel } from "../../../src/load/load-level.js";
import { LoopBench } from "../support/loop-bench.js";

const LEVEL: SessionConcurrencyLevel = {
  mode: "session_concurrency",
  value: 2,
  sessions: [
    {
      id: "a",
      turns: [
        { payload: 0, delayMs: 30 },
        { payload: 3, delayMs: 0 },
        { payload: 4, delayMs: 0 },
      ],
    },
    { id: "b", turns: [{ payload: 1, delayMs: 500 }] },
    {
      id: "c",
      turns: [
        { payload: 2, delayMs: 5 },
        { payload: 5, delayMs: 0 },
      ],
    },
  ],
};

const answered = { responsesMs: [10], endMs: 10 };

describe("a session concurrency", () => {
  it("sends each turn after the answer and the delay of the one before, and keeps sessions alive", async () => {
    const bench = new LoopBench(() => answered);
    const run = bench.loop.run(LEVEL, 6, 0);
    await bench.clock.advance(200);
    await run;
    expect(bench.sent.map(({ at, payload, sequenceId }) => [at, payload, sequenceId])).toEqual([
      [0, 0, 1],
      [0, 1, 2],
      // The third session begins when the second one has ended: no delay follows a last turn.
      [10, 2, 3],
      [25, 5, 3],
      [40, 3, 1],
      [50, 4, 1],
    ]);
    // A turn is scheduled after the delay, so the delay is not latency.
    expect(bench.sent.every(({ at, scheduled }) => at === scheduled)).toBe(true);
    expect(bench.sent.filter(({ isFirst }) => isFirst).map(({ payload }) => payload)).toEqual([0, 1, 2]);
    expect(bench.sent.filter(({ isLast }) => isLast).map(({ payload }) => payload)).toEqual([1, 5, 4]);
  });

  it("ends a session with a turn that fails, and begins the next one", async () => {
    const bench = new LoopBench((n) => (n === 0 ? { ...answered, failure: "boom" } : answered));
    const run = bench.loop.run(LEVEL, 6, 0);
    await bench.clock.advance(200);
    await run;
    expect(bench.sent.map(({ payload }) => payload)).toEqual([0, 1, 2, 5]);
  });

  it("sends no further turn when it is paused during a delay", async () => {
    const bench = new LoopBench(() => answered);
    const run = bench.loop.run(LEVEL, 6, 0);
    await bench.clock.advance(20);
    await Promise.all([bench.loop.pause(), run]);
    await bench.clock.advance(200);
    expect(bench.sent.map(({ payload }) => payload)).toEqual([0, 1, 2]);
  });
});
