import type { VariantComparison } from "@tritonjs/backends/optimize";
import { describe, expect, it } from "vitest";
import {
  chooseVariant,
  errorFault,
  leadingRuns,
  type VariantReport,
  type VariantRun,
} from "../../../src/optimize/choose-variant.js";

const run = (rate: number, others: Partial<VariantRun> = {}): VariantRun => ({
  batchSize: 1,
  threads: 0,
  concurrency: 1,
  rate,
  cpuMs: 1000 / rate,
  latencyMs: 1000 / rate,
  p99Ms: 2000 / rate,
  memoryMb: 100,
  spread: 0.01,
  ...others,
});

const form = (name: string, bytes: number, runs: readonly VariantRun[], fault?: string): VariantReport => ({
  name,
  text: name,
  layers: [],
  kept: [],
  bytes,
  worstLayers: [],
  runs,
  ...(fault !== undefined && { fault }),
});

const original = form("original", 1000, [run(100)]);

describe("the choice of a form", () => {
  it("takes the highest rate, the lowest latency or the smallest file, by the goal", () => {
    const forms = [
      original,
      form("fast", 800, [run(200), run(900, { batchSize: 8, latencyMs: 9 })]),
      form("prompt", 700, [run(300)]),
      form("small", 200, [run(50)]),
    ];
    const names = (["rate", "latency", "size"] as const).map(
      (goal) => chooseVariant(forms, goal, {})?.variant.name,
    );
    expect(names).toEqual(["fast", "prompt", "small"]);
    expect(chooseVariant(forms, "rate", {})?.reason).toBe(
      "highest rate of 4 forms that are within the limits: 900.0 rows a second of processor time with 8 rows a request, 9.00 times the original's, " +
        "0.80 times the original's size",
    );
  });

  it("compares its size with the original also where that was not measured", () => {
    const forms = [form("original", 1000, [], "it did not answer"), form("fast", 250, [run(200)])];
    expect(chooseVariant(forms, "rate", {})?.reason).toBe(
      "highest rate of the only form that is within the limits: 200.0 rows a second of processor time with 1 row a request, 0.25 times the original's size",
    );
  });

  it("compares processor time for the goal rate, whatever the clock of a busy machine says", () => {
    const forms = [original, form("lucky", 800, [run(500, { cpuMs: 9 })]), form("fast", 900, [run(90)])];
    forms.push(form("fastest", 900, [run(80, { cpuMs: 5 }), run(70, { cpuMs: 4, batchSize: 8 })]));
    expect(chooseVariant(forms, "rate", {})).toMatchObject({
      variant: { name: "fastest" },
      run: { cpuMs: 4 },
    });
  });

  it("takes the number of threads of the chosen form by the clock, because threads add to processor time", () => {
    const forms = [original, form("fast", 900, [run(500), run(800, { threads: 2, cpuMs: 2.5 })])];
    expect(chooseVariant(forms, "rate", {})).toMatchObject({
      variant: { name: "fast" },
      run: { threads: 2 },
    });
  });

  it("never takes a form with a fault, and the smaller one of two that are as fast", () => {
    const forms = [
      original,
      form(
        "wrong",
        100,
        [run(1e6)],
        "accuracy 12.0% is 80.0 points below the original's 92.0%: at most 0.5 are allowed",
      ),
      form("large", 900, [run(202)]),
      form("small", 300, [run(200)]),
    ];
    expect(chooseVariant(forms, "rate", {})?.variant.name).toBe("small");
    expect(chooseVariant([forms[1]!], "size", {})).toBeUndefined();
  });

  it("keeps the limit on the memory, also of the smallest file", () => {
    const forms = [
      form("original", 1000, [run(100, { memoryMb: 300 })]),
      form("fast", 500, [run(200, { memoryMb: 300 })]),
      form("fast-low-memory", 500, [run(150, { memoryMb: 200 })]),
    ];
    for (const goal of ["rate", "size"] as const)
      expect(chooseVariant(forms, goal, { maxMemoryMb: 250 })?.variant.name).toBe("fast-low-memory");
    expect(chooseVariant(forms, "rate", { maxMemoryMb: 100 })).toBeUndefined();
  });

  it("keeps the limits on the latency and the size", () => {
    const forms = [original, form("late", 400, [run(500, { p99Ms: 80 }), run(150, { p99Ms: 8 })])];
    expect(chooseVariant(forms, "rate", { latencyBudgetMs: 10 })?.run?.rate).toBe(150);
    expect(chooseVariant(forms, "rate", { latencyBudgetMs: 1 })).toBeUndefined();
    expect(chooseVariant(forms, "rate", { maxBytes: 300 })).toBeUndefined();
  });
});

describe("the runs that are measured again", () => {
  it("are those near the best, of any form and load, the best first", () => {
    const forms = [
      original,
      form("fast", 800, [run(900), run(1000, { batchSize: 8 })]),
      form("prompt", 700, [run(760, { concurrency: 4 }), run(300)]),
      form("wrong", 100, [run(5000)], "output 'y' differs by 20.0%: at most 10.0% are allowed"),
    ];
    const found = leadingRuns(forms, "rate", {}).map(({ variant, run }) => [variant.name, run!.rate]);
    expect(found).toEqual([
      ["fast", 1000],
      ["fast", 900],
      ["prompt", 760],
    ]);
    expect(leadingRuns(forms, "size", {})).toEqual([]);
    expect(leadingRuns(forms, "rate", { latencyBudgetMs: 1 })).toEqual([]);
  });
});

describe("the limits on errors", () => {
  const output = { name: "y", largest: 1, mean: 0.1, relative: 0.02, agreement: 1, isReal: true };
  const comparison = (
    others: Partial<VariantComparison["outputs"][number]>,
    accuracy?: number,
  ): VariantComparison => ({
    outputs: [{ ...output, ...others }],
    samples: 10,
    ...(accuracy !== undefined && { accuracy }),
  });

  it("count accuracy where there are labels, whatever the outputs", () => {
    const best = comparison({}, 0.9);
    expect(errorFault(comparison({ relative: 5 }, 0.895), best, {})).toBeUndefined();
    expect(errorFault(comparison({ relative: 0 }, 0.894), best, {})).toBe(
      "accuracy 89.4% is 0.6 points below the original's 90.0%: at most 0.5 are allowed",
    );
  });

  it("count the relative error of reals, and the agreement of answers alone, without labels", () => {
    const same = comparison({});
    expect(errorFault(same, same, {})).toBeUndefined();
    expect(errorFault(same, same, { maxError: 0.01 })).toBe(
      "output 'y' differs by 2.0%: at most 1.0% are allowed",
    );
    expect(errorFault(comparison({ relative: Number.NaN }), same, {})).toContain(
      "output 'y' differs by infinitely",
    );
    expect(errorFault(comparison({ isReal: false, agreement: 0.99 }), same, {})).toBe(
      "output 'y' agrees in 99.0% of its elements: at least 99.5% are needed",
    );
  });
});
