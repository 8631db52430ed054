import { describe, expect, it } from "vitest";
import { expectedLatencyMs, type WorkAhead } from "../../../../src/scheduler/adaptive-batching.js";

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
