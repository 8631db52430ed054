import { describe, expect, it } from "vitest";
import { Random } from "../../packages/perf/src/data/random.js";
import { SimulationClock } from "../../packages/perf/src/simulate/simulation-clock.js";
import { at, busyShare } from "./compare.js";
import { DEADLINE_CASES, type DeadlineCase, OTHER_CASES } from "./deadline-cases.js";
import { CONTENDERS, DEADLINES } from "./deadline-report.js";
import { shareInTime, worstShareInTime } from "./deadline-run.js";
import { svg } from "./plot.js";
import { arrivalTimes, Durations, SCENARIOS, type Scenario } from "./scenario.js";
import { serve } from "./serve.js";
import { adaptive, fixed, ONE_BY_ONE } from "./setting.js";

const named = (name: string): Scenario => SCENARIOS.find((scenario) => scenario.name === name)!;

const steady = named("GPU-like, steady");

describe("the clock of simulations", () => {
  it("runs timers in order, with all their effects before the next one", async () => {
    const clock = new SimulationClock();
    const seen: string[] = [];
    const note = (text: string) => () => seen.push(`${text} at ${clock.now()}`);
    for (const ms of [5, 1, 3, 2, 4]) clock.setTimer(ms, note(`timer ${ms}`));
    clock.setTimer(3, note("second timer 3"));
    clock.setTimer(2, note("cancelled")).cancel();
    clock.setTimer(1, () => {
      clock.defer(note("deferred"));
      void Promise.resolve().then(() => clock.setTimer(0.5, note("timer of a promise")));
    });
    await clock.advanceTo(4);
    expect(seen).toEqual([
      "timer 1 at 1",
      "deferred at 1",
      "timer of a promise at 1.5",
      "timer 2 at 2",
      "timer 3 at 3",
      "second timer 3 at 3",
      "timer 4 at 4",
    ]);
    expect(clock.now()).toBe(4);
    await clock.drain();
    expect(seen.at(-1)).toBe("timer 5 at 5");
  });
});

describe("the simulated load", () => {
  /** Arrivals within 50 seconds, by the part of the 250 ms cycle in which they come: 0 to 4. */
  const partsOf = (scenario: Scenario): number[] => {
    const parts = [0, 0, 0, 0, 0];
    for (const time of arrivalTimes(scenario, 2, 1)) {
      if (time >= 50_000) break;
      parts[Math.floor((time % 250) / 50)]!++;
    }
    return parts;
  };
  const sum = (counts: readonly number[]): number => counts.reduce((a, b) => a + b, 0);

  it("has the requested rate, whether even or in bursts", () => {
    for (const scenario of [steady, named("GPU-like, bursts")]) {
      expect(Math.abs(sum(partsOf(scenario)) / 100_000 - 1)).toBeLessThan(0.02);
    }
  });

  it("has five times the normal rate for a fifth of the time in bursts", () => {
    const parts = partsOf(named("GPU-like, bursts"));
    const ratio = (4 * parts[4]!) / sum(parts.slice(0, 4));
    expect(ratio).toBeGreaterThan(4.8);
    expect(ratio).toBeLessThan(5.2);
  });

  it("has batches that take as long as the curve says on average", () => {
    const durations = new Durations(named("GPU-like, drift"), 3);
    const mean = (progress: number): number => {
      let sum = 0;
      for (let i = 0; i < 2000; i++) sum += durations.next(100, progress);
      return sum / 2000;
    };
    expect(Math.abs(mean(0.1) - 20)).toBeLessThan(0.2);
    expect(Math.abs(mean(0.5) - 25)).toBeLessThan(0.2);
  });

  it("draws the same numbers from the same seed, with the right distribution", () => {
    const [a, b] = [new Random(7), new Random(7)];
    let [sum, squares, gaps, differences] = [0, 0, 0, 0];
    for (let i = 0; i < 20_000; i++) {
      const normal = a.normal();
      if (b.normal() !== normal) differences++;
      sum += normal;
      squares += normal * normal;
      gaps += new Random(i).exponential();
    }
    expect(differences).toBe(0);
    expect(Math.abs(sum / 20_000)).toBeLessThan(0.03);
    expect(Math.abs(squares / 20_000 - 1)).toBeLessThan(0.03);
    expect(Math.abs(gaps / 20_000 - 1)).toBeLessThan(0.03);
  });
});

describe("a simulated run", () => {
  it("has the same outcome each time", async () => {
    const run = { rate: 4, seed: 5 };
    const noise = { ...named("GPU-like, noise"), requests: 2000 };
    expect(await serve(noise, adaptive(noise), run)).toEqual(await serve(noise, adaptive(noise), run));
  });

  it("is a queue with one server without batching: it is busy for the load times the duration", async () => {
    const outcome = await serve(steady, ONE_BY_ONE, { rate: 0.05, seed: 5 });
    expect(outcome.batches).toBe(steady.requests);
    expect(Math.abs(busyShare(steady, outcome) - 0.05 * 10.1)).toBeLessThan(0.02);
  });

  it("answers every request or rejects it", async () => {
    const overload = await at(steady, adaptive(steady), 10);
    expect(overload.shed).toBeGreaterThan(overload.sent / 4);
    expect(overload.missed).toBeLessThan(overload.sent / 2);
    // Without a target no request is rejected: all wait.
    const eager = await at(steady, fixed(0, 128), 10);
    expect(eager.shed).toBe(0);
    expect(eager.missed).toBeGreaterThan(0.9 * eager.sent);
  });
});

describe("the plot", () => {
  it("has a line for each series", () => {
    const series = [{ name: "adaptive", color: "#123456", points: [[0, 0] as const, [10, 1] as const] }];
    const picture = svg([{ title: "t", xLabel: "x", yLabel: "y", xMax: 10, series }]);
    expect(picture).toContain('<path d="M52.0 214.0L406.0 34.0" fill="none" stroke="#123456"');
    expect(picture.match(/<text/g)!.length).toBeGreaterThan(10);
  });
});

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
        const run = { ...RUN, durationMs: 1000, load: 1.1 };
        for (const { sent, inTime, late, refused } of await contender.served(one, run)) {
          expect(inTime + late + refused).toBe(sent);
        }
      }
    },
  );
});
