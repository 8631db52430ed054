import { describe, expect, it } from "vitest";
import { KvBudget } from "../../src/decoder/generation-engine.js";
import type { EngineLoad } from "../../src/decoder/text-generation.js";
import { Admission } from "../../src/decoder/text-generation.js";

const load = (given: Partial<EngineLoad>): EngineLoad => ({
  taken: 0,
  reading: 0,
  runs: 0,
  running: 0,
  waiting: 0,
  room: 100,
  usedTokens: 0,
  totalTokens: 250,
  contextLength: 100,
  ...given,
});

describe("admission to the engine", () => {
  it("is free while every request could fill the context", () => {
    const admission = new Admission(8);
    admission.take(load({}));
    expect(admission.capacity).toBe(8);
    admission.sent();
    expect(admission.capacity).toBe(8);
  });

  it("lets one request after the other in when space may run out, as reports show that there is room", () => {
    const admission = new Admission(8);
    admission.take(load({}));
    admission.sent();
    admission.sent();
    expect(admission.capacity).toBe(0);
    admission.take(load({ taken: 2, running: 2, room: 83 }));
    expect(admission.capacity).toBe(8);
    admission.sent();
    expect(admission.capacity).toBe(0);
    admission.take(load({ taken: 3, running: 2, waiting: 1, room: 60 }));
    expect(admission.capacity).toBe(0);
    admission.take(load({ taken: 3, running: 3, room: 0 }));
    expect(admission.capacity).toBe(0);
    admission.take(load({ taken: 3, running: 1, room: 80 }));
    expect(admission.capacity).toBe(8);
  });

  it("lets others in beside requests whose formats are read", () => {
    const admission = new Admission(2);
    admission.take(load({ taken: 2, reading: 2 }));
    expect(admission.capacity).toBe(4);
    admission.take(load({ taken: 2, running: 2, waiting: 2, reading: 1 }));
    expect(admission.capacity).toBe(0);
  });

  it("starts to count again with a new engine", () => {
    const admission = new Admission(8);
    admission.take(load({ totalTokens: 50 }));
    admission.sent();
    expect(admission.capacity).toBe(0);
    admission.take(load({ totalTokens: 50 }));
    expect(admission.capacity).toBe(8);
  });
});

describe("the budget of keys and values", () => {
  it("counts rows that are padded to the longest", () => {
    const budget = new KvBudget(100);
    expect(budget.demand([10, 30, 20])).toBe(90);
    expect(budget.fits([10, 30, 20])).toBe(true);
    expect(budget.fits([10, 34, 20])).toBe(false);
    expect(budget.demand([])).toBe(0);
  });

  it("tells how long one more text may be", () => {
    const budget = new KvBudget(100);
    expect(budget.roomBeside([])).toBe(100);
    expect(budget.roomBeside([20, 30])).toBe(33);
    expect(budget.roomBeside([20, 40])).toBe(0);
  });
});
