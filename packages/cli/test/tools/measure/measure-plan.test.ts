import { describe, expect, it } from "vitest";
import { levelValue } from "../../../src/load/load-level.js";
import { type LevelResult, meetsLimit } from "../../../src/measure/level-result.js";
import type { LevelRange } from "../../../src/measure/measure-level.js";
import { measurePlan } from "../../../src/measure/measure-level.js";
import { LoopLoad, LoopTime } from "../support/loop-load.js";
import { sessionOf } from "../support/measure-session.js";
import { SimulatedLoad } from "../support/simulated-load.js";
import { VirtualTime } from "../support/virtual-time.js";

const concurrency = (value: number) => ({ mode: "concurrency", value }) as const;

function plan(kind: "sweep" | "search", start: number, end: number, step: number) {
  const range: LevelRange = { start, end, step };
  return { kind, range, levelAt: concurrency } as const;
}

const valuesOf = (results: readonly LevelResult[]) => results.map(({ level }) => levelValue(level));

/** A server with a delay of 10 ms, so that the latency is 10 ms times the concurrency. */
function simulate() {
  const clock = new VirtualTime();
  return { clock, load: new SimulatedLoad(clock, { serviceMs: () => 10 }) };
}

describe("a sweep", () => {
  it("measures each level from the start to the end", async () => {
    const { clock, load } = simulate();
    const results = await measurePlan(sessionOf(load, clock), plan("sweep", 1, 6, 2));
    expect(valuesOf(results)).toEqual([1, 3, 5]);
  });

  it("reports the first level over the latency limit, and ends there", async () => {
    const { clock, load } = simulate();
    const results = await measurePlan(sessionOf(load, clock, { latencyLimitMs: 35 }), plan("sweep", 1, 0, 1));
    expect(valuesOf(results)).toEqual([1, 2, 3, 4]);
    expect(results.map(({ overLimit }) => overLimit)).toEqual([false, false, false, true]);
  });

  it("goes on after an unstable level", async () => {
    const { clock, load } = simulate();
    const results = await measurePlan(sessionOf(load, clock, { maxTrials: 2 }), plan("sweep", 1, 2, 1));
    expect(results.map(({ instability }) => instability)).toEqual(["too few windows", "too few windows"]);
  });

  it("ends at an interruption with the levels so far", async () => {
    const { clock, load } = simulate();
    const stop = new AbortController();
    let windows = 0;
    const observer = { onWindow: () => (++windows === 4 ? stop.abort() : undefined) };
    const session = sessionOf(load, clock, {}, { signal: stop.signal, observer });
    const results = await measurePlan(session, plan("sweep", 1, 100, 1));
    expect(results.map(({ interrupted }) => interrupted)).toEqual([false, true]);
  });
});

describe("a binary search", () => {
  it("finds the highest level within the limit", async () => {
    const { clock, load } = simulate();
    const results = await measurePlan(
      sessionOf(load, clock, { latencyLimitMs: 105 }),
      plan("search", 1, 64, 1),
    );
    expect(valuesOf(results)).toEqual([1, 64, 32, 16, 8, 12, 10, 11]);
    const best = Math.max(...valuesOf(results.filter(({ overLimit }) => !overLimit)));
    expect(best).toBe(10);
  });

  it("finds the highest rate within the limit, after rates that have overloaded the server", async () => {
    const clock = new LoopTime();
    const load = new LoopLoad(clock, { serviceMs: () => 10 });
    const results = await measurePlan(sessionOf(load, clock, { latencyLimitMs: 15 }), {
      kind: "search",
      range: { start: 10, end: 400, step: 2 },
      levelAt: (value) => ({ mode: "request_rate", value, distribution: "constant" }),
    });
    expect(valuesOf(results).slice(0, 3)).toEqual([10, 400, 205]);
    // The server answers 100 requests a second.
    const best = Math.max(...valuesOf(results.filter(meetsLimit)));
    expect(best).toBeGreaterThan(97);
    expect(best).toBeLessThanOrEqual(100);
  });

  it("stops after a start that exceeds the limit, and after an end that meets it", async () => {
    const one = simulate();
    const slow = await measurePlan(
      sessionOf(one.load, one.clock, { latencyLimitMs: 5 }),
      plan("search", 1, 64, 1),
    );
    expect(valuesOf(slow)).toEqual([1]);
    const other = simulate();
    const fast = await measurePlan(
      sessionOf(other.load, other.clock, { latencyLimitMs: 5000 }),
      plan("search", 1, 64, 1),
    );
    expect(valuesOf(fast)).toEqual([1, 64]);
  });
});

describe("a plan", () => {
  it("sends the warm-up requests before the first level", async () => {
    const { clock, load } = simulate();
    const results = await measurePlan(sessionOf(load, clock, { warmupRequestCount: 7, requestCount: 20 }), {
      kind: "single",
      level: concurrency(1),
    });
    expect(load.requestCount).toBe(27);
    expect(results[0]!.figures.requestCount).toBe(20);
  });

  it("measures the phases of a spike", async () => {
    const { clock, load } = simulate();
    const rate = (value: number) => ({ mode: "request_rate", value, distribution: "constant" }) as const;
    const results = await measurePlan(sessionOf(load, clock), {
      kind: "phases",
      phases: [
        { name: "before", level: rate(10), durationMs: 2000 },
        { name: "peak", level: rate(200), durationMs: 1000 },
        { name: "after", level: rate(10), durationMs: 3000 },
      ],
    });
    expect(results.map(({ phase }) => phase)).toEqual(["before", "peak", "after"]);
    const [before, peak, after] = results.map(({ figures }) => figures.latency.max);
    expect(before).toBeCloseTo(10, 6);
    expect(peak).toBeGreaterThan(400);
    expect(after).toBeGreaterThan(500);
  });
});
