/** Whole microseconds of a time in milliseconds. */
export function microseconds(ms: number): number {
  return Number.isFinite(ms) ? Math.round(ms * 1000) : 0;
}

/** Six significant digits, as C++ prints a double. */
export function sixDigits(value: number): string {
  return Number.isFinite(value) ? String(Number(value.toPrecision(6))) : "0";
}

/** A time in the unit that suits it. */
export function duration(ms: number): string {
  if (!Number.isFinite(ms)) return "-";
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 1000) return `${Number(ms.toPrecision(3))} ms`;
  return `${Number((ms / 1000).toPrecision(3))} s`;
}
