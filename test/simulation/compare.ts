import type { Scenario } from "./scenario.js";
import { type Outcome, serve } from "./serve.js";
import { adaptive, fixed, ONE_BY_ONE, type Setting } from "./setting.js";
import { bestFixed, type Effort, type Rated, sustainedRate } from "./sustained-rate.js";

/** Load at which machine time is compared, as a share of the rate that the best fixed setting sustains. */
export const COMPARED_LOAD = 0.6;

/** Adaptive batching and the best fixed setting. */
export interface Duel {
  readonly scenario: Scenario;
  readonly bestFixed: Setting;
  /** Highest sustained rates in requests per second. */
  readonly rates: Readonly<Record<"bestFixed" | "adaptive", number>>;
  /** Share of the time that the instances work at the compared load. */
  readonly busy: Readonly<Record<"bestFixed" | "adaptive", number>>;
}

/** The same for alternative settings. */
export interface Comparison extends Duel {
  readonly others: Readonly<Record<"oneByOne" | "eager" | "delayed", number>>;
}

/** Precision of the comparison: settings are searched with other arrivals than they are measured with. */
export const EFFORT = {
  search: { seeds: [1], precision: 0.005 },
  measure: { seeds: [11, 12, 13], precision: 0.004 },
} satisfies Record<string, Effort>;

/** Searches the best fixed setting for a scenario, and compares adaptive batching with it. */
export async function duel(scenario: Scenario): Promise<Duel> {
  const candidates = await bestFixed(scenario, EFFORT.search);
  const { setting, rate: near } = candidates[0]!;
  const best = await sustainedRate(scenario, setting, EFFORT.measure, near);
  const own = await sustainedRate(scenario, adaptive(scenario), EFFORT.measure, near);
  const load = COMPARED_LOAD * best;
  const outcome = await at(scenario, adaptive(scenario), load);
  return {
    scenario,
    bestFixed: setting,
    rates: { bestFixed: 1000 * best, adaptive: 1000 * own },
    busy: {
      bestFixed: await leastBusy(scenario, candidates, load),
      // Missing the target does not count as saving time.
      adaptive: inTime(outcome) ? busyShare(scenario, outcome) : 1,
    },
  };
}

/** Compares all settings. */
export async function compare(scenario: Scenario): Promise<Comparison> {
  const { maxBatchSize, targetMs } = scenario;
  const rate = async (setting: Setting): Promise<number> =>
    1000 * (await sustainedRate(scenario, setting, EFFORT.measure));
  return {
    ...(await duel(scenario)),
    others: {
      oneByOne: await rate(ONE_BY_ONE),
      eager: await rate(fixed(0, maxBatchSize)),
      delayed: await rate(fixed(0.2 * targetMs, maxBatchSize)),
    },
  };
}

/** Of the fixed settings that are as good as the best, the one that needs the least machine time. */
async function leastBusy(scenario: Scenario, candidates: readonly Rated[], load: number): Promise<number> {
  let least = 1;
  for (const { setting } of candidates) {
    const outcome = await at(scenario, setting, load);
    if (inTime(outcome)) least = Math.min(least, busyShare(scenario, outcome));
  }
  return least;
}

/** One run at a load. */
export function at(scenario: Scenario, setting: Setting, rate: number): Promise<Outcome> {
  return serve(scenario, setting, { rate, seed: 21 });
}

/** Whether 99% of the requests were answered in time. */
export function inTime({ missed, sent }: Outcome): boolean {
  return missed <= sent / 100;
}

/** Share of the time that the instances worked. */
export function busyShare({ instances }: Scenario, { busyMs, durationMs }: Outcome): number {
  return Math.min(1, busyMs / (instances * durationMs));
}
