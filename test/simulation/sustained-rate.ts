import { capacity, type Scenario } from "./scenario.js";
import { serve } from "./serve.js";
import { fixedSettings, type Setting } from "./setting.js";

/** Seeds of the runs that a rate is measured with. */
export interface Effort {
  readonly seeds: readonly number[];
  /** Relative error of a rate. */
  readonly precision: number;
}

/** A setting and the rate, in requests per millisecond, that it sustains. */
export interface Rated {
  readonly setting: Setting;
  readonly rate: number;
}

/**
 * The highest rate at which 99% of the requests are answered in time: the mean over the seeds.
 * @param near where to begin
 */
export async function sustainedRate(
  scenario: Scenario,
  setting: Setting,
  effort: Effort,
  near = capacity(scenario) / 2,
): Promise<number> {
  let sum = 0;
  for (const seed of effort.seeds) {
    sum += await highestRate(near, effort, (rate) => sustains(scenario, setting, seed, rate));
  }
  return sum / effort.seeds.length;
}

/**
 * The fixed settings with the highest rate, measured with the first seed: the best one, then those within 1% of it.
 */
export async function bestFixed(scenario: Scenario, effort: Effort): Promise<Rated[]> {
  const seed = effort.seeds[0]!;
  let best = 0;
  const found: Rated[] = [];
  for (const setting of fixedSettings(scenario)) {
    const test = (rate: number) => sustains(scenario, setting, seed, rate);
    // Most settings fall short of the best so far in their first run.
    if (best > 0 && !(await test(0.99 * best))) continue;
    const rate = await highestRate(best > 0 ? best : capacity(scenario) / 2, effort, test);
    found.push({ setting, rate });
    best = Math.max(best, rate);
  }
  return found.filter(({ rate }) => rate >= 0.99 * best).sort((a, b) => b.rate - a.rate);
}

async function sustains(scenario: Scenario, setting: Setting, seed: number, rate: number): Promise<boolean> {
  const mayMiss = Math.floor(scenario.requests / 100);
  const { missed } = await serve(scenario, setting, { rate, seed, mayMiss });
  return missed <= mayMiss;
}

/** Searches around `near` in growing strides, then between the last rate that passed and the first that failed. */
async function highestRate(
  near: number,
  { precision }: Effort,
  passes: (rate: number) => Promise<boolean>,
): Promise<number> {
  let stride = 4 * precision * near;
  let low = near;
  let high = near;
  if (await passes(near)) {
    for (high = near + stride; await passes(high); high += stride) {
      low = high;
      stride *= 2;
    }
  } else {
    for (low = near - stride; low > 0 && !(await passes(low)); low -= stride) {
      high = low;
      stride *= 2;
    }
    low = Math.max(0, low);
  }
  while (high - low > precision * high) {
    const middle = (low + high) / 2;
    if (await passes(middle)) low = middle;
    else high = middle;
  }
  return low;
}
