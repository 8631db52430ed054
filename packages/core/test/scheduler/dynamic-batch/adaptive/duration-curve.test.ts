import { describe, expect, it } from "vitest";
import { type DurationFit, expectedMs, learnDuration } from "../../../../src/scheduler/learned-times.js";

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
