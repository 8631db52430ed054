/** A linear scale from values to positions in a drawing. */
export interface AxisScale {
  readonly ticks: readonly number[];
  positionOf(value: number): number;
  /** Text of a tick. @default the number */
  labelOf?(tick: number): string;
}

/** Steps of ticks that people read easily. */
const STEPS = [1, 2, 2.5, 5, 10];

/**
 * A scale whose ends are ticks. Values that are not finite are left out.
 *
 * @param from position of the lowest tick
 * @param to position of the highest tick
 */
export function axisScale(values: readonly number[], from: number, to: number, tickCount = 5): AxisScale {
  const known = values.filter(Number.isFinite);
  const low = Math.min(0, ...known);
  const high = Math.max(low, ...known);
  const step = niceStep((high - low || 1) / tickCount);
  const first = Math.floor(low / step);
  const last = Math.max(first + 1, Math.ceil(high / step - 1e-9));
  const ticks = Array.from({ length: last - first + 1 }, (_, i) =>
    Number(((first + i) * step).toPrecision(12)),
  );
  const span = (last - first) * step;
  return { ticks, positionOf: (value) => from + ((value - first * step) / span) * (to - from) };
}

function niceStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(rough));
  return (STEPS.find((step) => step * power >= rough - 1e-12) ?? 10) * power;
}
