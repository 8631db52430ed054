import { describe, expect, it } from "vitest";
import { largestBatch, planBatch, type WaitingWork } from "../../../../src/scheduler/adaptive-batching.js";

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
