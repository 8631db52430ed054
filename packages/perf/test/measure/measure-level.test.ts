import { describe, expect, it } from "vitest";
import { levelValue } from "../../src/load/load-level.js";
import { type LevelResult, meetsLimit, type WindowSummary } from "../../src/measure/level-result.js";
import { type LevelRange, measureLevel, measurePhase, measurePlan } from "../../src/measure/measure-level.js";
import { LoopLoad, LoopTime } from "../support/loop-load.js";
import { latencyOfMD1, meanOfMD1 } from "../support/m-d-1.js";
import { sessionOf } from "../support/measure-session.js";
import { windowOf } from "../support/request-rows.js";
import { SimulatedLoad, type SimulatedServer } from "../support/simulated-load.js";
import { VirtualTime } from "../support/virtual-time.js";

function simulate(server: SimulatedServer, seed = 1) {
  const clock = new VirtualTime();
  return { clock, load: new SimulatedLoad(clock, server, seed) };
}

describe("measuring a level", () => {
  it("gives the known latency and throughput of a server with a fixed delay", async () => {
    const { clock, load } = simulate({ serviceMs: () => 20 });
    const result = await measureLevel(sessionOf(load, clock), { mode: "concurrency", value: 1 });
    const { figures } = result;
    expect(result.instability).toBeUndefined();
    expect(result.trials).toBe(3);
    expect(figures.requestCount).toBe(750);
    expect(figures.throughput).toBeCloseTo(50, 6);
    expect(figures.latency.mean).toBeCloseTo(20, 6);
    expect(figures.latency.deviation).toBeCloseTo(0, 6);
    for (const percentile of [50, 90, 95, 99]) {
      expect(figures.latency.percentile(percentile)).toBeCloseTo(20, 6);
    }
  });

  it("counts the time in the queue of a busy server: latency is concurrency times delay", async () => {
    const { clock, load } = simulate({ serviceMs: () => 10 });
    const { figures } = await measureLevel(sessionOf(load, clock), { mode: "concurrency", value: 8 });
    expect(figures.latency.percentile(50)).toBeCloseTo(80, 6);
    expect(figures.throughput).toBeCloseTo(100, 6);
  });

  it.each([
    [0.5, 0],
    [0.7, 7],
  ])("gives the distribution of an M/D/1 queue with a load of %f, from the real loop", async (busy, seed) => {
    const serviceMs = 10;
    const clock = new LoopTime();
    const load = new LoopLoad(clock, { serviceMs: () => serviceMs }, seed);
    const { figures } = await measureLevel(
      sessionOf(load, clock, { intervalMs: 150_000, stability: { percentage: 25 } }),
      { mode: "request_rate", value: (busy * 1000) / serviceMs, distribution: "poisson" },
    );
    expect(figures.requestCount).toBeGreaterThan(20_000);
    const errorFor = (measured: number, services: number) => Math.abs(measured / (services * serviceMs) - 1);
    expect(errorFor(figures.latency.mean, meanOfMD1(busy))).toBeLessThan(0.04);
    for (const percentile of [50, 90, 99]) {
      const expected = latencyOfMD1(busy, percentile);
      expect(errorFor(figures.latency.percentile(percentile), expected)).toBeLessThan(0.05);
    }
    // Requests that find the server idle take one service time.
    expect(figures.latency.percentile((1 - busy) * 90)).toBeCloseTo(serviceMs, 1);
    // The loop is never late on this clock.
    expect(figures.fromSend.mean).toBe(figures.latency.mean);
  });

  it.each([
    ["goes on until a request has ended", 2000, 1, undefined],
    ["ends after its longest time", 500, 0, "no requests"],
  ])("a window without an answer %s", async (_, longestIntervalMs, count, fault) => {
    const { clock, load } = simulate({ serviceMs: () => 1500 });
    const begin = clock.now();
    const options = { intervalMs: 250, longestIntervalMs, maxTrials: 1 };
    const result = await measureLevel(sessionOf(load, clock, options), { mode: "concurrency", value: 1 });
    expect([result.figures.requestCount, result.fault?.kind]).toEqual([count, fault]);
    expect(clock.now() - begin).toBeLessThanOrEqual(longestIntervalMs);
  });

  it("counts latency from the schedule when sending was late, and shows both figures", async () => {
    const clock = new VirtualTime();
    const rows = [0, 10, 20, 30].map((at) => ({ scheduled: at, sent: at + 100, end: at + 105 }));
    const load = new SimulatedLoad(clock, { serviceMs: () => 1 });
    load.take = async () => windowOf(clock.now() - 5000, clock.now(), rows);
    const { figures } = await measureLevel(sessionOf(load, clock), {
      mode: "request_rate",
      value: 100,
      distribution: "constant",
    });
    expect(figures.latency.mean).toBe(105);
    expect(figures.fromSend.mean).toBe(5);
  });

  it("reports a level that never gets stable, with what differs and its last windows", async () => {
    const { clock, load } = simulate({ serviceMs: (_, start) => 1 + (start - 1_000_000) / 10_000 });
    const result = await measureLevel(sessionOf(load, clock, { maxTrials: 6, intervalMs: 10_000 }), {
      mode: "concurrency",
      value: 1,
    });
    expect(result.instability).toBe("throughput and latency");
    expect(result.trials).toBe(6);
    expect(result.figures.requestCount).toBeGreaterThan(0);
  });

  it("tells that only the latency is unstable when requests pile up", async () => {
    const { clock, load } = simulate({ serviceMs: () => 11 });
    const result = await measureLevel(sessionOf(load, clock, { maxTrials: 5 }), {
      mode: "request_rate",
      value: 100,
      distribution: "constant",
    });
    expect(result.instability).toBe("latency");
    expect(result.figures.throughput).toBeCloseTo(1000 / 11, 0);
  });

  it("measures exactly the requested number of requests in one window", async () => {
    const { clock, load } = simulate({ serviceMs: () => 4 });
    const result = await measureLevel(sessionOf(load, clock, { requestCount: 137 }), {
      mode: "concurrency",
      value: 2,
    });
    expect(load.requestCount).toBe(137);
    expect(result.figures.requestCount).toBe(137);
    expect(result.instability).toBeUndefined();
    expect(result.figures.throughput).toBeCloseTo(250, 6);
  });

  it("fills count windows until they have their number of requests", async () => {
    const { clock, load } = simulate({ serviceMs: () => 30 });
    const windows: number[] = [];
    const observer = { onWindow: (_: unknown, summary: WindowSummary) => windows.push(summary.requestCount) };
    const result = await measureLevel(
      sessionOf(load, clock, { mode: "count_windows", windowRequestCount: 50 }, { observer }),
      { mode: "concurrency", value: 1 },
    );
    expect(windows.every((requestCount) => requestCount >= 50 && requestCount < 55)).toBe(true);
    expect(result.figures.throughput).toBeCloseTo(1000 / 30, 0);
  });

  it.each(["time_windows", "count_windows"] as const)("ends %s in which no request ends", async (mode) => {
    const { clock, load } = simulate({ serviceMs: () => 1e9 });
    const result = await measureLevel(sessionOf(load, clock, { mode }), { mode: "concurrency", value: 1 });
    expect(result.fault).toEqual({
      kind: "no requests",
      text: "No valid requests recorded within time interval. Please use a larger time window.",
    });
  });

  it("ends when every request of a window failed, with the text of the failure and what was measured before", async () => {
    const { clock, load } = simulate({
      serviceMs: () => 10,
      errorFor: (i) => (i >= 500 ? "connection refused" : undefined),
    });
    const result = await measureLevel(sessionOf(load, clock), { mode: "concurrency", value: 1 });
    expect(result.fault?.text).toBe("every request failed: connection refused");
    expect(result.figures.requestCount).toBe(500);
    expect(result.figures.failureCount).toBe(500);
  });

  it("names the failure of the window before when no request ends after it", async () => {
    const { clock, load } = simulate({
      serviceMs: (i) => (i > 450 ? 1e9 : 10),
      errorFor: (i) => (i === 450 ? "connection lost" : undefined),
    });
    const result = await measureLevel(sessionOf(load, clock), { mode: "concurrency", value: 1 });
    expect(result.fault).toEqual({
      kind: "all failed",
      text: "no request ended after a failure: connection lost",
    });
    expect(result.figures.requestCount).toBe(450);
  });

  it("keeps what was measured when the generator fails", async () => {
    const { clock, load } = simulate({ serviceMs: () => 10 });
    const take = load.take.bind(load);
    let calls = 0;
    load.take = async () => {
      if (calls++ === 7) throw new Error("a thread of the generator died");
      return take();
    };
    const result = await measureLevel(sessionOf(load, clock), { mode: "concurrency", value: 1 });
    expect(result.fault).toEqual({ kind: "generator", text: "a thread of the generator died" });
    expect(result.figures.requestCount).toBe(600);
  });

  it("reports the windows so far when it is interrupted", async () => {
    const { clock, load } = simulate({ serviceMs: () => 10 });
    const stop = new AbortController();
    const session = sessionOf(
      load,
      clock,
      {},
      { signal: stop.signal, observer: { onWindow: () => stop.abort() } },
    );
    const result = await measureLevel(session, { mode: "concurrency", value: 1 });
    expect(result.interrupted).toBe(true);
    expect(result.figures.requestCount).toBe(500);
  });

  it("stops early when the latency is over its limit in the last windows", async () => {
    const { clock, load } = simulate({ serviceMs: (_, start) => 20 + (start - 1_000_000) / 1000 });
    const result = await measureLevel(sessionOf(load, clock, { latencyLimitMs: 5 }), {
      mode: "concurrency",
      value: 1,
    });
    expect(result.trials).toBe(3);
    expect(result.overLimit).toBe(true);
  });
});

describe("measuring a phase", () => {
  it("cuts a window each second, and all of them count", async () => {
    const { clock, load } = simulate({ serviceMs: () => 10 });
    const level = { mode: "concurrency", value: 1 } as const;
    const result = await measurePhase(sessionOf(load, clock), level, 2500, "peak");
    expect(result.phase).toBe("peak");
    expect(result.timeline.map(({ end, start }) => end - start)).toEqual([1000, 1000, 500]);
    expect(result.figures.requestCount).toBe(250);
    expect(result.instability).toBeUndefined();
  });
});

describe("the value of a level", () => {
  it("is the mean rate of its gaps", () => {
    const gapsMicroseconds = [100_000, 200_000, 500_000];
    expect(levelValue({ mode: "request_intervals", gapsMicroseconds })).toBeCloseTo(3.75, 6);
  });
});

describe("measure plan", () => {
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
      const results = await measurePlan(
        sessionOf(load, clock, { latencyLimitMs: 35 }),
        plan("sweep", 1, 0, 1),
      );
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
});
