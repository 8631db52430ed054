import { expect, it } from "vitest";
import { LatencyHistogram, OCTAVE_BOUNDS_MS } from "../../../src/observe/statistics.js";

it("reads quantiles to within 9%", () => {
  const counts = new LatencyHistogram(OCTAVE_BOUNDS_MS);
  for (let i = 1; i <= 1000; i++) counts.observe(i / 10);
  for (const share of [0.5, 0.9, 0.99]) {
    const ratio = counts.quantile(share)! / (share * 100);
    expect(Math.abs(Math.log2(ratio))).toBeLessThan(1 / 8);
  }
  expect(new LatencyHistogram(OCTAVE_BOUNDS_MS).quantile(0.5)).toBeUndefined();
});

it("tells the durations between two looks apart, and takes any duration", () => {
  const counts = new LatencyHistogram(OCTAVE_BOUNDS_MS);
  counts.observe(1000);
  const earlier = counts.copy();
  for (const odd of [0, -1, 1e12, 2]) counts.observe(odd);
  const since = counts.since(earlier);
  expect(since.total).toBe(4);
  expect(since.quantile(1)).toBeGreaterThan(100_000);
  expect(since.quantile(0.01)).toBeLessThan(0.01);
});
