import { describe, expect, it } from "vitest";
import { afterRefusal, punctualityAfterBatch, UNTRIED } from "../../../../src/scheduler/adaptive-batching.js";

const after = (batches: number, late: number, inTime: number) => {
  let punctuality = UNTRIED;
  for (let i = 0; i < batches; i++) punctuality = punctualityAfterBatch(punctuality, late, inTime);
  return punctuality;
};

describe("patience and caution", () => {
  it("stay unchanged while all answers are in time", () => {
    expect(after(1000, 0, 50)).toEqual(UNTRIED);
  });

  it("react to late answers: patience falls first, then caution rises", () => {
    expect(after(10, 1, 0).patience).toBeCloseTo(0);
    expect(after(10, 1, 0).caution).toBeCloseTo(0.1);
    expect(after(1000, 1, 0)).toEqual({ patience: -1, caution: 1 });
  });

  it("recover when answers are in time again", () => {
    let punctuality = after(1000, 1, 0);
    for (let i = 0; i < 1000; i++) punctuality = punctualityAfterBatch(punctuality, 0, 50);
    expect(punctuality).toEqual(UNTRIED);
  });

  it("tolerate one late answer in a thousand", () => {
    expect(after(200, 1, 999)).toEqual(UNTRIED);
  });

  it("lose patience after refusals, without gaining caution", () => {
    let punctuality = UNTRIED;
    for (let i = 0; i < 100; i++) punctuality = afterRefusal(punctuality);
    expect(punctuality).toEqual({ patience: 0, caution: 0 });
    expect(afterRefusal({ patience: -0.5, caution: 1 })).toEqual({ patience: -0.5, caution: 1 });
  });
});
