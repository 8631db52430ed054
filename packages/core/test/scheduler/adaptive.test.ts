import { describe, expect, it } from "vitest";
import {
  ArrivalRate,
  afterRefusal,
  expectedLatencyMs,
  largestBatch,
  planBatch,
  punctualityAfterBatch,
  UNTRIED,
  type WaitingWork,
  type WorkAhead,
} from "../../src/scheduler/adaptive-batching.js";
import { type DurationFit, expectedMs, learnDuration } from "../../src/scheduler/learned-times.js";

describe("the estimated rate of arrivals", () => {
  it("is unknown at first", () => {
    const rate = new ArrivalRate(10);
    expect([rate.rowsPerMs(0), rate.dispersion]).toEqual([0, 1]);
  });

  it("counts rows per millisecond", () => {
    const rate = new ArrivalRate(10);
    for (let at = 0; at < 1000; at += 2) rate.add(3, at);
    expect(rate.rowsPerMs(1000)).toBeCloseTo(1.5, 1);
  });

  it("falls while no request arrives, and is forgotten after a long silence", () => {
    const rate = new ArrivalRate(10);
    for (let at = 0; at < 1000; at++) rate.add(1, at);
    expect(rate.rowsPerMs(1200)).toBeLessThan(0.7);
    expect(rate.rowsPerMs(100_000)).toBe(0);
  });

  it("distinguishes bursts from an even flow at the same rate", () => {
    const even = new ArrivalRate(10);
    const bursts = new ArrivalRate(10);
    for (let at = 0; at < 1000; at++) even.add(1, at);
    for (let at = 0; at < 1000; at += 50) for (let i = 0; i < 50; i++) bursts.add(1, at);
    expect(bursts.rowsPerMs(1000)).toBeGreaterThan(0.5);
    expect(even.dispersion).toBe(1);
    expect(bursts.dispersion).toBeGreaterThan(20);
  });
});

type Sample = readonly [rows: number, ms: number];

function learnt(samples: readonly Sample[], from?: DurationFit): DurationFit {
  let fit = from;
  for (const [rows, ms] of samples) fit = learnDuration(fit, rows, ms);
  return fit!;
}

/** Batches of 1 to 16 rows in a fixed irregular order. */
const rowsOf = (i: number): number => 1 + ((i * 7) % 16);

const exactly = (count: number, fixedMs: number, perRowMs: number): Sample[] =>
  Array.from({ length: count }, (_, i) => [rowsOf(i), fixedMs + perRowMs * rowsOf(i)]);

/** Deviations that cancel each other out. */
const wobble = (i: number): number => [0.9, 1.1, 0.95, 1.05][i % 4]!;

describe("the estimated duration of batches", () => {
  it.each([
    [10, 0.5],
    [1, 2],
    [8, 0],
  ])("is learnt as %d ms and %d ms a row", (fixedMs, perRowMs) => {
    const fit = learnt(exactly(60, fixedMs, perRowMs));
    expect(fit.fixedMs).toBeCloseTo(fixedMs, 0);
    expect(fit.perRowMs).toBeCloseTo(perRowMs, 1);
  });

  it("is split in half between fixed and per-row time after one batch", () => {
    const fit = learnt([[4, 20]]);
    expect([fit.fixedMs, fit.perRowMs]).toEqual([10, 2.5]);
  });

  it("is learnt from noisy samples, with their usual deviation", () => {
    const fit = learnt(exactly(400, 10, 1).map(([rows, ms], i) => [rows, ms * wobble(i)]));
    expect(Math.abs(expectedMs(fit, 8) - 18)).toBeLessThan(0.9);
    expect(fit.spread).toBeGreaterThan(0.05);
    expect(fit.spread).toBeLessThan(0.12);
  });

  it("hardly changes after one batch that takes twenty times as long", () => {
    const before = learnt(exactly(100, 10, 1));
    const after = learnDuration(before, 8, 360);
    expect(Math.abs(expectedMs(after, 8) - 18)).toBeLessThan(1);
  });

  it("follows a lasting change", () => {
    const before = learnt(exactly(100, 10, 1));
    const after = learnt(exactly(120, 20, 2), before);
    expect(Math.abs(expectedMs(after, 8) - 36)).toBeLessThan(2);
  });

  it("soon forgets slow first batches", () => {
    const fit = learnt([[1, 500], [2, 300], ...exactly(15, 10, 1)]);
    expect(expectedMs(fit, 8)).toBeLessThan(30);
  });

  it("keeps the ratio of fixed to per-row time while all batches have one size", () => {
    const varied = learnt(exactly(100, 10, 1));
    const uniform = learnt(
      Array.from({ length: 1000 }, (_, i): Sample => [16, 26 * wobble(i)]),
      varied,
    );
    expect(Math.abs(expectedMs(uniform, 16) - 26)).toBeLessThan(1.5);
    expect(Math.abs(expectedMs(uniform, 1) - 11)).toBeLessThan(4);
  });

  it("never has a negative part", () => {
    const falling: Sample[] = exactly(50, 0, 0).map(([rows]) => [rows, 40 - rows]);
    const fit = learnt(falling);
    expect(fit.perRowMs).toBe(0);
    const steep: Sample[] = exactly(50, 0, 0).map(([rows]) => [rows, rows * rows]);
    expect(learnt(steep).fixedMs).toBeGreaterThanOrEqual(0);
  });

  it("can start at zero and grow later", () => {
    const nothing = learnt(exactly(20, 0, 0));
    expect(expectedMs(nothing, 8)).toBeLessThan(0.01);
    const something = learnt(exactly(300, 10, 1), nothing);
    expect(Math.abs(expectedMs(something, 8) - 18)).toBeLessThan(1.5);
  });
});

const rules = { targetLatencyMs: 100, maxBatchSize: 10 };

/** The largest batch has 10 rows and takes 20 ms. */
const curve = { fixedMs: 10, perRowMs: 1, spread: 0 };

function latency(given: Partial<WorkAhead>): number {
  return expectedLatencyMs(
    { rowsAhead: 0, rows: 1, idleInMs: [0], curve, rowsPerMs: 0, caution: 0, ...given },
    rules,
  );
}

describe("the expected latency of a new request", () => {
  it("is that of its own batch when no request is ahead", () => {
    expect(latency({})).toBe(11);
    expect(latency({ rows: 4 })).toBe(14);
  });

  it("starts when the instance becomes idle", () => {
    expect(latency({ idleInMs: [7] })).toBe(18);
  });

  it("includes the requests that share its batch", () => {
    expect(latency({ rowsAhead: 5, idleInMs: [7] })).toBe(23);
  });

  it("includes the full batches that run before it", () => {
    expect(latency({ rowsAhead: 25, idleInMs: [7] })).toBe(7 + 20 + 20 + 16);
  });

  it("is divided among instances, each of which takes a batch when it is idle", () => {
    expect(latency({ rowsAhead: 25, idleInMs: [3, 7] })).toBe(3 + 20 + 16);
    expect(latency({ rowsAhead: 15, idleInMs: [3, 7] })).toBe(7 + 16);
  });

  it("includes, with caution, expected arrivals up to a full batch", () => {
    expect(latency({ idleInMs: [7], rowsPerMs: 0.5, caution: 1 })).toBeCloseTo(21.5);
    expect(latency({ idleInMs: [7], rowsPerMs: 5, caution: 1 })).toBe(27);
    expect(latency({ idleInMs: [7], rowsPerMs: 5, caution: 0 })).toBe(18);
  });

  it("grows, with caution, with the spread of durations", () => {
    const varied = { ...curve, spread: 0.2 };
    expect(latency({ idleInMs: [7], curve: varied, caution: 1 })).toBeGreaterThan(20);
    expect(latency({ idleInMs: [7], curve: varied, caution: 0 })).toBe(18);
  });

  it("counts all rows of a request larger than the largest batch", () => {
    expect(latency({ rows: 20 })).toBe(30);
  });
});

describe("plan batch", () => {
  const rules = { targetLatencyMs: 50, maxBatchSize: 128 };
  const gpu = { fixedMs: 10, perRowMs: 0.1, spread: 0 };
  const cpu = { fixedMs: 1, perRowMs: 2, spread: 0 };

  function work(given: Partial<WaitingWork> = {}): WaitingWork {
    return {
      rows: 1,
      waitedMs: 0,
      answerInMs: 50,
      arrivals: { rowsPerMs: 1, dispersion: 1 },
      nextIdleMs: Number.POSITIVE_INFINITY,
      curve: gpu,
      patience: 1,
      ...given,
    };
  }

  describe("the largest batch size", () => {
    it("takes at most half of the target, so that two batches fit into it", () => {
      expect(largestBatch({ ...gpu, perRowMs: 1 }, rules)).toBe(15);
    });

    it("does not exceed that of the model", () => {
      expect(largestBatch(gpu, { ...rules, maxBatchSize: 16 })).toBe(16);
    });

    it("stays small where larger batches hardly add throughput", () => {
      expect(largestBatch(cpu, { ...rules, targetLatencyMs: 10_000 })).toBeLessThan(40);
      expect(largestBatch({ fixedMs: 0, perRowMs: 2, spread: 0 }, rules)).toBe(4);
    });

    it("is one when a row takes most of the target, and the model's own when the fixed time exceeds it", () => {
      expect(largestBatch({ fixedMs: 0, perRowMs: 40, spread: 0 }, rules)).toBe(1);
      expect(largestBatch({ fixedMs: 100, perRowMs: 1, spread: 0 }, rules)).toBe(128);
    });
  });

  describe("the plan of a batch", () => {
    it("waits only as long as the first request is still answered in time", () => {
      const { waitMs, maxRows } = planBatch(work(), rules);
      expect(waitMs).toBeGreaterThan(25);
      // Requests that join make the batch longer.
      expect(waitMs + gpu.fixedMs + gpu.perRowMs * (1 + waitMs)).toBeLessThanOrEqual(50);
      expect(maxRows).toBeGreaterThan(100);
    });

    it("ends the wait once the batch is large enough", () => {
      const { enoughRows } = planBatch(work(), rules);
      expect(planBatch(work({ rows: enoughRows }), rules).waitMs).toBe(0);
    });

    it("does not wait when no request is expected", () => {
      expect(planBatch(work({ arrivals: { rowsPerMs: 0, dispersion: 1 } }), rules).waitMs).toBe(0);
      expect(planBatch(work({ arrivals: { rowsPerMs: 0.001, dispersion: 1 } }), rules).waitMs).toBe(0);
    });

    it("does not wait when a larger batch saves no time", () => {
      expect(planBatch(work({ curve: { fixedMs: 0, perRowMs: 2, spread: 0 } }), rules).waitMs).toBe(0);
    });

    it("does not wait when the first request has no time left", () => {
      expect(planBatch(work({ waitedMs: 39, answerInMs: 11 }), rules).waitMs).toBe(0);
      expect(planBatch(work({ waitedMs: 60, answerInMs: -10 }), rules).waitMs).toBe(0);
    });

    it("waits less when the first request has a deadline of its own", () => {
      const { waitMs } = planBatch(work({ answerInMs: 20 }), rules);
      expect(waitMs).toBeGreaterThan(0);
      expect(waitMs).toBeLessThan(10);
    });

    it("keeps a distance to the deadline that grows with the spread of durations", () => {
      const steady = planBatch(work(), rules).waitMs;
      const varied = planBatch(work({ curve: { ...gpu, spread: 0.3 } }), rules).waitMs;
      expect(varied).toBeLessThan(steady - 5);
    });

    it("leaves time for requests that arrive while the batch runs, unless another instance is idle", () => {
      const arrivals = { rowsPerMs: 0.4, dispersion: 1 };
      const busy = planBatch(work({ curve: cpu, arrivals }), rules);
      const idle = planBatch(work({ curve: cpu, arrivals, nextIdleMs: 0 }), rules);
      expect(busy.waitMs > 0 ? busy.enoughRows : 0).toBeLessThan(idle.enoughRows);
    });

    it("leaves more time when arrivals come in bursts", () => {
      const even = planBatch(work({ arrivals: { rowsPerMs: 2, dispersion: 1 } }), rules);
      const bursts = planBatch(work({ arrivals: { rowsPerMs: 2, dispersion: 60 } }), rules);
      expect(bursts.waitMs).toBeLessThan(even.waitMs);
    });

    it("waits, without patience, at most as long as joining requests would need for their own batch", () => {
      const { waitMs } = planBatch(work({ patience: 0, waitedMs: 4, answerInMs: 46 }), rules);
      expect(waitMs).toBe(6);
      expect(planBatch(work({ patience: 0, waitedMs: 10, answerInMs: 40 }), rules).waitMs).toBe(0);
    });
  });
});

const after = (batches: number, late: number, inTime: number) => {
  let punctuality = UNTRIED;
  for (let i = 0; i < batches; i++) punctuality = punctualityAfterBatch(punctuality, late, inTime);
  return punctuality;
};

describe("patience and caution", () => {
  it("stay unchanged while all answers are in time", () => {
    expect(after(1000, 0, 50)).toEqual(UNTRIED);
  });

  it("react to late answers: patience falls first, then caution rises", () => {
    expect(after(10, 1, 0).patience).toBeCloseTo(0);
    expect(after(10, 1, 0).caution).toBeCloseTo(0.1);
    expect(after(1000, 1, 0)).toEqual({ patience: -1, caution: 1 });
  });

  it("recover when answers are in time again", () => {
    let punctuality = after(1000, 1, 0);
    for (let i = 0; i < 1000; i++) punctuality = punctualityAfterBatch(punctuality, 0, 50);
    expect(punctuality).toEqual(UNTRIED);
  });

  it("tolerate one late answer in a thousand", () => {
    expect(after(200, 1, 999)).toEqual(UNTRIED);
  });

  it("lose patience after refusals, without gaining caution", () => {
    let punctuality = UNTRIED;
    for (let i = 0; i < 100; i++) punctuality = afterRefusal(punctuality);
    expect(punctuality).toEqual({ patience: 0, caution: 0 });
    expect(afterRefusal({ patience: -0.5, caution: 1 })).toEqual({ patience: -0.5, caution: 1 });
  });
});
