import { describe, expect, it } from "vitest";
import { ArrivalRate } from "../../../../src/scheduler/adaptive-batching.js";

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
