import { describe, expect, it } from "vitest";
import { Distribution } from "../../../src/measure/distribution.js";
import { seededNumbers } from "../support/simulated-load.js";

function plainPercentile(sorted: readonly number[], percentile: number): number {
  return sorted[Math.max(0, Math.ceil((percentile / 100) * sorted.length) - 1)]!;
}

describe("a distribution", () => {
  it("agrees with sorted values within a thousandth, over eight orders of magnitude", () => {
    const random = seededNumbers(3);
    const values = Array.from({ length: 5000 }, () => 10 ** (random() * 8 - 3));
    const distribution = new Distribution();
    for (const value of values) distribution.record(value);
    const sorted = values.toSorted((a, b) => a - b);
    for (const percentile of [1, 5, 25, 50, 75, 90, 95, 99, 99.9, 100]) {
      const expected = plainPercentile(sorted, percentile);
      expect(Math.abs(distribution.percentile(percentile) / expected - 1)).toBeLessThan(0.0011);
    }
    expect([distribution.min, distribution.max]).toEqual([sorted[0], sorted.at(-1)]);
  });

  it("keeps an exact mean and deviation when parts are added", () => {
    const values = Array.from({ length: 999 }, (_, i) => 1e6 + (i % 7));
    const parts = [new Distribution(), new Distribution(), new Distribution()];
    const whole = new Distribution();
    values.forEach((value, i) => {
      parts[i % 3]!.record(value);
      whole.record(value);
    });
    const merged = new Distribution();
    for (const part of parts) merged.add(part);
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
    expect(merged.mean).toBeCloseTo(mean, 6);
    expect(merged.deviation).toBeCloseTo(Math.sqrt(squares / (values.length - 1)), 6);
    expect(merged.deviation).toBeCloseTo(whole.deviation, 9);
    expect(merged.count).toBe(999);
  });

  it("has no figures without values, and no deviation for one value", () => {
    const distribution = new Distribution();
    expect([distribution.mean, distribution.percentile(50), distribution.min]).toEqual([NaN, NaN, NaN]);
    distribution.record(5);
    expect(distribution.deviation).toBeNaN();
    expect(distribution.percentile(99)).toBe(5);
  });

  it("divides its values into bars that contain each of them once", () => {
    const distribution = new Distribution();
    for (let i = 0; i < 1000; i++) distribution.record(i / 10);
    const bars = distribution.bars(10);
    expect(bars.reduce((sum, { count }) => sum + count, 0)).toBe(1000);
    for (const { count } of bars) expect(Math.abs(count - 100)).toBeLessThan(6);
    expect(new Distribution().bars(5)).toEqual([]);
  });
});
