import { median, short } from "./statistics.mjs";

/** How many pairs, and how long one measurement takes. `BENCH_PAIRS` and `BENCH_SECONDS` change it. */
export const PAIRS = Number(process.env.BENCH_PAIRS ?? 5);
export const SECONDS = Number(process.env.BENCH_SECONDS ?? 1);

/**
 * Measures two programs in turns: A B A B ... Each function returns `{ rate, ... }`, more being better. What happens
 * to the machine meanwhile happens to both; the first measurement of each only warms them up.
 */
export async function runPairs(ours, reference, { pairs = PAIRS, warmUp = true } = {}) {
  if (warmUp) {
    await ours();
    await reference();
  }
  const runs = { ours: [], reference: [] };
  for (let pair = 0; pair < pairs; pair++) {
    runs.ours.push(await ours());
    runs.reference.push(await reference());
  }
  return runs;
}

/** Median and spread of `ours / reference` of each pair. */
export function ratioOf({ ours, reference }, figure = (run) => run.rate) {
  const ratios = ours.map((run, i) => figure(run) / figure(reference[i]));
  return {
    ratio: short(median(ratios)),
    least: short(Math.min(...ratios)),
    most: short(Math.max(...ratios)),
    ratios: ratios.map(short),
  };
}

export const medianOf = (runs, figure) => short(median(runs.map(figure)));
