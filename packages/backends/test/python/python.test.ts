import type { InstanceHosting, ModelConfig } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { modelConfig } from "../../../core/test/support/model-config.js";
import { parametersJson } from "../../src/python/messages.js";
import { BatchesAhead } from "../../src/python/python-executor.js";

function after(
  durations: readonly number[],
  overrides: Partial<ModelConfig> = {},
  hosting: InstanceHosting = {},
): number {
  const ahead = new BatchesAhead(modelConfig({ overrides }), hosting);
  for (const microseconds of durations) ahead.took(microseconds);
  return ahead.count;
}

describe("the batches that a Python process gets ahead", () => {
  it("are none before the first batch has ended", () => {
    expect(after([])).toBe(0);
  });

  it("take about 2 ms, and are at most 16", () => {
    expect(after([700])).toBe(2);
    expect(after([100])).toBe(16);
    expect(after([0])).toBe(16);
    expect(after([2001])).toBe(0);
  });

  it("follow the durations, but not one that is unlike the others", () => {
    expect(after([500, 1_000_000])).toBe(3);
    expect(after([500, ...new Array<number>(20).fill(3000)])).toBe(0);
    expect(after([3000, ...new Array<number>(20).fill(500)])).toBeGreaterThanOrEqual(3);
  });

  it("are none for sequences, decoupled models and processes that are recycled", () => {
    expect(after([100], { sequenceBatching: {} as ModelConfig["sequenceBatching"] })).toBe(0);
    expect(after([100], { modelTransactionPolicy: { decoupled: true } })).toBe(0);
    expect(after([100], {}, { recycle: { afterRequests: 5 } })).toBe(0);
  });
});

describe("parameters of Python models", () => {
  it("python model parameters keep every value, including numbers that JSON cannot write", () => {
    const parameters = {
      nan: Number.NaN,
      up: Number.POSITIVE_INFINITY,
      down: Number.NEGATIVE_INFINITY,
      wide: 2n ** 63n - 1n,
      large: 1e300,
      text: "NaN",
      yes: true,
    };
    expect(parametersJson(parameters)).toBe(
      '{"nan":NaN,"up":Infinity,"down":-Infinity,"wide":9223372036854775807,"large":1e+300,"text":"NaN","yes":true}',
    );
  });
});
