import { expect, it } from "vitest";
import { LatencyWatch } from "../../../src/observe/statistics.js";

const answer = (watch: LatencyWatch, count: number, requestMs = (_: number) => 3) => {
  for (let i = 0; i < count; i++) watch.add(1, 2, requestMs(i));
};

it("counts every request of a model that answers few between two looks", () => {
  const watch = new LatencyWatch();
  for (let look = 0; look < 3; look++) {
    answer(watch, 1000);
    watch.looked();
  }
  expect(watch.request.total).toBe(3000);
  expect([watch.queue.total, watch.compute.total]).toEqual([3000, 3000]);
});

it("counts only some requests of a fast model, without a change of its quantiles", () => {
  const watch = new LatencyWatch();
  answer(watch, 400_000);
  watch.looked();
  const before = watch.request.copy();
  // The latency depends on the place in a batch of 64.
  answer(watch, 400_000, (i) => 1 + (i % 64));
  const counted = watch.request.since(before);
  expect(counted.total).toBeGreaterThan(900);
  expect(counted.total).toBeLessThan(1200);
  expect(counted.quantile(0.5)! / 32).toBeCloseTo(1, 0.9);
  expect(counted.quantile(0.99)! / 63).toBeCloseTo(1, 0.9);
});

it("counts only some thousand requests of a fast model before its first look", () => {
  const watch = new LatencyWatch();
  answer(watch, 400_000, (i) => 1 + (i % 64));
  expect(watch.request.total).toBeLessThan(8000);
  expect(watch.request.quantile(0.5)! / 32).toBeCloseTo(1, 0.9);
});

it("counts every request again once the model is slow", () => {
  const watch = new LatencyWatch();
  answer(watch, 400_000);
  watch.looked();
  watch.looked();
  const before = watch.request.copy();
  answer(watch, 100);
  expect(watch.request.since(before).total).toBeGreaterThanOrEqual(99);
});
