import { describe, expect, it } from "vitest";
import { DEADLINE_CASES, type DeadlineCase, OTHER_CASES } from "./deadline-cases.js";
import { CONTENDERS, DEADLINES } from "./deadline-report.js";
import { shareInTime, worstShareInTime } from "./deadline-run.js";

const RUN = { seed: 1, durationMs: 10_000 };

/** Loads that 99% of each class must be in time at, and shares in time at 1.2 times the capacity. */
const GOALS = [
  [1, 0.8],
  [0.97, 0.8],
  [0.95, 0.8],
  [0.72, 0.55],
] as const;

describe("deadlines in the simulation", () => {
  it.each(DEADLINE_CASES.map((one, i) => ({ one, name: one.name, goal: GOALS[i]! })))(
    "keep 99% of each class in time up to the load of the goal: $name",
    async ({ one, goal: [load] }) => {
      const outcomes = await DEADLINES.served(one, { ...RUN, load });
      expect(worstShareInTime(outcomes)).toBeGreaterThanOrEqual(0.99);
      for (const { late } of outcomes) expect(late).toBe(0);
    },
  );

  it("plan more time for batches whose times vary, while smaller ones are enough", async () => {
    const one = OTHER_CASES.find(({ noise, instances }) => noise > 0 && instances === 2)!;
    const outcomes = await DEADLINES.served(one, { ...RUN, load: 0.65 });
    expect(worstShareInTime(outcomes)).toBeGreaterThanOrEqual(0.99);
  });

  it("give up no tight requests in a burst while looser ones can wait until it is over", async () => {
    const one: DeadlineCase = {
      ...DEADLINE_CASES[1]!,
      fixedMs: 1,
      perRowMs: 0.6,
      maxBatchSize: 32,
      classes: [
        { share: 0.42, limitMs: 18 },
        { share: 0.11, limitMs: 107 },
        { share: 0.31, limitMs: 267 },
        { share: 0.16, limitMs: 1679 },
      ],
      arrivals: "bursts",
    };
    const outcomes = await DEADLINES.served(one, { ...RUN, load: 0.75 });
    expect(worstShareInTime(outcomes)).toBeGreaterThanOrEqual(0.99);
  });

  it.each(DEADLINE_CASES.map((one, i) => ({ one, name: one.name, goal: GOALS[i]! })))(
    "keep the goodput in overload: $name",
    async ({ one, goal: [, share] }) => {
      expect(shareInTime(await DEADLINES.served(one, { ...RUN, load: 1.2 }))).toBeGreaterThanOrEqual(share);
    },
  );

  it.each(OTHER_CASES.map((one) => ({ one, name: one.name })))(
    "serve nearly the capacity at twice the load: $name",
    async ({ one }) => {
      const outcomes = await DEADLINES.served(one, { ...RUN, load: 2 });
      expect(2 * shareInTime(outcomes)).toBeGreaterThanOrEqual(0.93);
    },
  );

  it.each(CONTENDERS.map((contender) => ({ contender, name: contender.name })))(
    "count each request once: $name",
    async ({ contender }) => {
      for (const one of DEADLINE_CASES) {
        for (const { sent, inTime, late, refused } of await contender.served(one, { ...RUN, load: 1.1 })) {
          expect(inTime + late + refused).toBe(sent);
        }
      }
    },
  );
});
