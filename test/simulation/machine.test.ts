import { describe, expect, it } from "vitest";
import { shareInTime, worstShareInTime } from "./deadline-run.js";
import { EAGER, MACHINE_CASES, PLANNED, serveIdeally, serveMachine } from "./machine-run.js";

const RUN = { seed: 1, durationMs: 10_000 };

/** Loads that independent eager batchers do not carry any more, and those that the plan carries. */
const LOADS = [
  { eager: 0.74, planned: 0.86 },
  { eager: 0.5, planned: 0.55 },
  { eager: 0.84, planned: 0.96 },
  { eager: 0.74, planned: 0.88 },
];
const CASES = MACHINE_CASES.map((one, i) => ({ one, name: one.name, ...LOADS[i]! }));

describe("one plan for three models on two cores, in the simulation", () => {
  it.each(CASES)("carries more than independent eager batchers: $name", async ({ one, eager, planned }) => {
    const alone = await serveMachine(one, EAGER, { ...RUN, load: eager });
    expect(worstShareInTime(alone)).toBeLessThan(0.99);
    const together = await serveMachine(one, PLANNED, { ...RUN, load: planned });
    expect(worstShareInTime(together)).toBeGreaterThanOrEqual(0.99);
  });

  it.each(CASES)("carries no more than an ideal machine: $name", ({ one, planned }) => {
    const ideal = serveIdeally(one, { ...RUN, load: planned });
    expect(worstShareInTime(ideal)).toBeGreaterThanOrEqual(0.99);
  });

  it.each(CASES)("starves no model in overload: $name", async ({ one }) => {
    const outcomes = await serveMachine(one, PLANNED, { ...RUN, load: 1.2 });
    expect(shareInTime(outcomes)).toBeGreaterThanOrEqual(0.7);
    expect(worstShareInTime(outcomes)).toBeGreaterThanOrEqual(0.5);
    for (const { sent, inTime, late, refused } of outcomes) expect(inTime + late + refused).toBe(sent);
  });
});
