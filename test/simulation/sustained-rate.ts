import { capacity, type Scenario } from "./scenario.js";
import { serve } from "./serve.js";
import { fixedSettings, type Setting } from "./setting.js";

/** Length and chances of the runs that a rate is measured with. */
export interface Effort {
  readonly requests: number;
  readonly seeds: readonly number[];
  /** Relative error of a rate. */
  readonly precision: number;
}

/** A setting and the rate, in requests per millisecond, that it sustains. */
export interface Rated {
  readonly setting: Setting;
  readonly rate: number;
}

/** The highest rate at which 99% of the requests are answered in time: the mean over the seeds. */
export async function sustainedRate(scenario: Scenario, setting: Setting, effort: Effort): Promise<number> {
  let sum = 0;
  for (const seed of effort.seeds) sum += await highestRate(scenario, setting, effort, seed, 0);
  return sum / effort.seeds.length;
}

/** The fixed settings with the highest rate: the best one first, then those within 1% of it. */
export async function bestFixed(scenario: Scenario, effort: Effort): Promise<Rated[]> {
  const [seed] = effort.seeds;
  let best = 0;
  const found: Rated[] = [];
  for (const setting of fixedSettings(scenario)) {
    // Most settings fall short of the best so far in their first run.
    const rate = await highestRate(scenario, setting, effort, seed!, 0.99 * best);
    if (rate > 0.99 * best) found.push({ setting, rate });
    best = Math.max(best, rate);
  }
  return found.filter(({ rate }) => rate >= 0.99 * best).sort((a, b) => b.rate - a.rate);
}

/** @param above where to begin; a setting that does not even sustain this rate is not looked at further */
async function highestRate(
  scenario: Scenario,
  setting: Setting,
  { requests, precision }: Effort,
  seed: number,
  above: number,
): Promise<number> {
  const mayMiss = Math.floor(requests / 100);
  const sustains = async (rate: number): Promise<boolean> => {
    const { missed } = await serve(scenario, setting, { rate, requests, seed, mayMiss });
    return missed <= mayMiss;
  };
  if (above > 0 && !(await sustains(above))) return above;
  let low = above;
  let high = capacity(scenario);
  while (high - low > precision * high) {
    const middle = (low + high) / 2;
    if (await sustains(middle)) low = middle;
    else high = middle;
  }
  return low;
}
