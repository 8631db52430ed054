import { type AnalyzeLoad, busyConcurrency } from "../load.js";
import type { ModelSpace } from "../search-space.js";
import { canonical, type VariantParameters } from "../variant-parameters.js";

/**
 * Variants that show how long batches take: a few sizes for each setting that changes the duration. They have no delay,
 * so that some of them are candidates too.
 */
export function calibrationVariants(
  space: ModelSpace,
  load: AnalyzeLoad,
  batchSize: number,
): VariantParameters[] {
  const settings: VariantParameters[][] = [];
  const numbers = orKept(endsAndMiddle(space.instances ?? []));
  for (const [place, isolation] of orKept(space.isolation).entries()) {
    // A further isolation differs by what a message costs, so one number of instances and threads shows its share.
    for (const threads of place === 0 ? orKept(space.threads) : orKept(space.threads).slice(0, 1)) {
      for (const instances of place === 0 ? numbers : numbers.slice(-1)) {
        const sizes = usefulSizes(space, load, batchSize, instances);
        // The first setting gives the shape of the curve.
        const chosen = settings.length === 0 ? shapeOf(sizes) : [...new Set([sizes[0], sizes.at(-1)])];
        settings.push(
          orKept(chosen.filter((size) => size !== undefined)).map((maxBatchSize) =>
            canonical({
              ...(instances !== undefined && { instances }),
              ...(isolation !== undefined && { isolation }),
              ...(maxBatchSize !== undefined && { maxBatchSize }),
              ...(space.queueDelayMicroseconds !== undefined && { queueDelayMicroseconds: 0 }),
              ...(space.preferredBatchSizes !== undefined && { preferredBatchSizes: [] }),
              ...(space.targetLatencyMs !== undefined && { targetLatencyMs: 0 }),
              ...(threads !== undefined && { threads }),
            }),
          ),
        );
      }
    }
  }
  return settings.flat();
}

/**
 * Sizes of the space with which the load keeps all instances busy, so that the run is a measurement of the candidate
 * too. Only the smallest size may be larger.
 */
function usefulSizes(
  { maxBatchSize = [] }: ModelSpace,
  load: AnalyzeLoad,
  batchSize: number,
  instances = 1,
): number[] {
  const sizes = maxBatchSize.toSorted((a, b) => a - b);
  if (load.kind !== "levels" || load.levels.some(({ mode }) => mode !== "concurrency")) return sizes;
  const most = Math.max(...load.levels.map(({ value }) => value));
  return sizes.filter(
    (maxBatchSize, i) => i === 0 || busyConcurrency({ maxBatchSize, instances }, batchSize) <= most,
  );
}

/** The first, the middle and the last value, and the one between the two larger ones, where the curve may bend. */
function shapeOf(values: readonly number[]): number[] {
  const last = values.length - 1;
  const middle = (last + 1) >> 1;
  const places = new Set([0, middle, (middle + last) >> 1, last]);
  return values.filter((_, i) => places.has(i));
}

/** The first, the middle and the last value. */
function endsAndMiddle<Value>(values: readonly Value[]): Value[] {
  if (values.length < 3) return [...values];
  return [values[0]!, values[values.length >> 1]!, values.at(-1)!];
}

/** The configured value, which is undefined, where there are no values. */
function orKept<Value>(values: readonly Value[] = []): readonly (Value | undefined)[] {
  return values.length === 0 ? [undefined] : values;
}
