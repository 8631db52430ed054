import { type InstanceGroup, type ModelInstance, Payload } from "@tritonjs/core/extension";
import { InferenceRequest } from "@tritonjs/core/internal";
import { describe, expect, it } from "vitest";
import { SeededRandom } from "../../../test/support/seeded-random.js";
import {
  type DurationFit,
  expectedMs,
  InstanceTimes,
  LearnedTimes,
  learnDuration,
} from "../src/learned-times.js";

/** Teaches batches of random sizes. */
function taught(durationMs: (rows: number) => number, maxRows = 32, batches = 400): InstanceTimes {
  const random = new SeededRandom(3);
  const times = new InstanceTimes(maxRows);
  for (let i = 0; i < batches; i++) {
    const rows = 1 + random.below(maxRows);
    times.learn(rows, durationMs(rows));
  }
  return times;
}

describe("the learned times of an instance", () => {
  it("are unknown before five batches", () => {
    const times = new InstanceTimes(8);
    for (let i = 0; i < 4; i++) times.learn(1, 10);
    expect(times.known).toBe(false);
    times.learn(1, 10);
    expect(times.known).toBe(true);
    expect(times.expectedMs(1)).toBeCloseTo(10, 5);
  });

  it("follow a line, beyond the sizes that have run too", () => {
    const times = taught((rows) => 10 + 0.5 * rows, 16, 2000);
    for (const rows of [1, 7, 16]) expect(times.expectedMs(rows)).toBeCloseTo(10 + 0.5 * rows, 1);
    expect(times.expectedMs(32)).toBeCloseTo(36, 0);
    expect(times.largestWithin(14.2)).toBe(8);
    expect(times.largestWithin(1)).toBe(1);
    expect(times.best).toBe(16);
  });

  it("follow steps, as of a model that pads its batches to powers of two", () => {
    const padded = (rows: number) => 4 + 2 ** Math.ceil(Math.log2(rows));
    const times = taught(padded, 32, 2000);
    for (const rows of [3, 8, 9, 16, 17, 32]) {
      expect(Math.abs(times.expectedMs(rows) / padded(rows) - 1)).toBeLessThan(0.1);
    }
  });

  it("plan with the usual deviation", () => {
    const random = new SeededRandom(5);
    const times = taught(() => 10 * (0.8 + 0.4 * random.next()), 4, 1000);
    expect(times.spread).toBeGreaterThan(0.06);
    expect(times.spread).toBeLessThan(0.14);
    expect(times.plannedMs(2)).toBeGreaterThan(1.08 * times.expectedMs(2));
  });

  it("say no top rate while only much smaller batches have run", () => {
    const times = new InstanceTimes(32);
    for (let i = 0; i < 10; i++) times.learn(1 + (i % 2), 10);
    expect(times.topRowsPerMs).toBe(Number.POSITIVE_INFINITY);
    for (let i = 0; i < 10; i++) times.learn(32, 26);
    expect(times.topRowsPerMs).toBeCloseTo(32 / 26, 1);
  });

  it("are hardly moved by one outlier, and follow a lasting change", () => {
    const times = taught((rows) => 10 + rows, 8);
    times.learn(4, 5000);
    expect(times.expectedMs(4)).toBeLessThan(16);
    for (let i = 0; i < 300; i++) times.learn(4, 28);
    expect(times.expectedMs(4)).toBeGreaterThan(25);
  });
});

describe("the learned times of all instances", () => {
  it("learn nothing of batches whose requests are all over before they begin", () => {
    const instance = { placement: { kind: "KIND_CPU" } } as ModelInstance;
    const times = new LearnedTimes({ serving: [instance] } as unknown as InstanceGroup, 8);
    const tookMs = (begin: number, end: number, leave?: "late" | "cancelled") => {
      const payload = new Payload();
      const request = new InferenceRequest("m", { inputs: new Map() });
      request.batchSize = 2;
      if (leave === "late") request.deadline = begin;
      payload.add(request);
      payload.take();
      if (leave === "cancelled") request.cancel();
      times.started(instance, payload, begin);
      return times.ended(instance, payload, end);
    };
    expect(tookMs(0, 0.01, "late")).toBeUndefined();
    expect(tookMs(1, 1.01, "cancelled")).toBeUndefined();
    expect(tookMs(2, 22)).toBe(20);
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
