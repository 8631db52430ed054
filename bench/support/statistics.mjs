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
