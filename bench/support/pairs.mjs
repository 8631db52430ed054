/** Number of pairs, and duration of one measurement. `BENCH_PAIRS` and `BENCH_SECONDS` change them. */
export const PAIRS = Number(process.env.BENCH_PAIRS ?? 4);
export const SECONDS = Number(process.env.BENCH_SECONDS ?? 1);

/**
 * Measures two programs in turns: A B A B ... Each function returns `{ rate, ... }`, where more is better. Other work
 * on the machine affects both alike. The first measurement of each is a warm-up.
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

const sorted = (values) => [...values].sort((a, b) => a - b);

export function median(values) {
  const all = sorted(values);
  const half = all.length >> 1;
  return all.length % 2 === 1 ? all[half] : (all[half - 1] + all[half]) / 2;
}

export function percentile(values, percent) {
  const all = sorted(values);
  return all[Math.min(all.length - 1, Math.ceil((percent / 100) * all.length) - 1)];
}

/** Rounds to three significant digits. */
export function short(value) {
  if (value === undefined || value === null || !Number.isFinite(value)) return value;
  if (Math.abs(value) >= 1000) return Math.round(value);
  return Number(value.toPrecision(3));
}
