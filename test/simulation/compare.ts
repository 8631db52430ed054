import type { Scenario } from "./scenario.js";
import { type Outcome, serve } from "./serve.js";
import { adaptive, fixed, ONE_BY_ONE, type Setting } from "./setting.js";
import { bestFixed, type Effort, type Rated, sustainedRate } from "./sustained-rate.js";

/** Load at which machine time is compared, as a share of the rate that the best fixed setting sustains. */
export const COMPARED_LOAD = 0.6;

/** What came of one scenario. Rates are in requests per second. */
export interface Comparison {
  readonly scenario: Scenario;
  readonly bestFixed: string;
  readonly rates: Readonly<Record<"oneByOne" | "eager" | "delayed" | "bestFixed" | "adaptive", number>>;
  /** Share of the time that the instances work at the compared load. */
  readonly busy: Readonly<Record<"eager" | "bestFixed" | "adaptive", number>>;
}

/** How carefully to compare: settings are searched with other arrivals than they are measured with. */
export const EFFORT = {
  search: { requests: 10_000, seeds: [1], precision: 0.005 },
  measure: { requests: 20_000, seeds: [11, 12, 13], precision: 0.003 },
} satisfies Record<string, Effort>;

/** Finds the best fixed setting for a scenario, and compares it with the others. */
export async function compare(scenario: Scenario): Promise<Comparison> {
  const candidates = await bestFixed(scenario, EFFORT.search);
  const best = candidates[0]!.setting;
  const rate = async (setting: Setting): Promise<number> =>
    1000 * (await sustainedRate(scenario, setting, EFFORT.measure));
  const { maxBatchSize, targetMs } = scenario;
  const eager = fixed(0, maxBatchSize);
  const rates = {
    oneByOne: await rate(ONE_BY_ONE),
    eager: await rate(eager),
    delayed: await rate(fixed(0.2 * targetMs, maxBatchSize)),
    bestFixed: await rate(best),
    adaptive: await rate(adaptive(scenario)),
  };
  const load = (COMPARED_LOAD * rates.bestFixed) / 1000;
  const busy = {
    eager: busyShare(scenario, await at(scenario, eager, load)),
    bestFixed: await leastBusy(scenario, candidates, load),
    adaptive: busyShare(scenario, await at(scenario, adaptive(scenario), load)),
  };
  return { scenario, bestFixed: best.name, rates, busy };
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
  return serve(scenario, setting, { rate, requests: EFFORT.measure.requests, seed: 21 });
}

/** Whether 99% of the requests were answered in time. */
export function inTime({ missed, sent }: Outcome): boolean {
  return missed <= sent / 100;
}

/** Share of the time that the instances worked. */
export function busyShare({ instances }: Scenario, { busyMs, durationMs }: Outcome): number {
  return Math.min(1, busyMs / (instances * durationMs));
}
