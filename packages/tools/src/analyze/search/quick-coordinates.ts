import type { ModelConfig } from "@tritonjs/protocol";
import type { SearchSpace } from "../search-space.js";
import type { Candidate } from "../variant-parameters.js";

/** Index of each dimension. */
export type Coordinate = readonly number[];

/** A dimension of the quick search: a parameter of one model with values by index. */
export interface QuickDimension {
  readonly model: string;
  readonly parameter: "maxBatchSize" | "instances";
  /** Number of values. */
  readonly count: number;
  valueAt(index: number): number;
}

/**
 * Dimensions of all models in one list, as Model Analyzer has them: powers of two for the batch, whole numbers for the
 * instances.
 */
export function quickDimensions(
  configs: Readonly<Record<string, ModelConfig>>,
  space: SearchSpace,
): QuickDimension[] {
  return Object.entries(configs).flatMap(([model, config]) => {
    const values = space[model] ?? {};
    const dimension = (parameter: QuickDimension["parameter"], list: readonly number[]): QuickDimension => ({
      model,
      parameter,
      count: list.length,
      valueAt: (index) => list[index]!,
    });
    return [
      ...(config.maxBatchSize > 0 && values.maxBatchSize?.length
        ? [
            dimension(
              "maxBatchSize",
              values.maxBatchSize.toSorted((a, b) => a - b),
            ),
          ]
        : []),
      ...(values.instances?.length
        ? [
            dimension(
              "instances",
              values.instances.toSorted((a, b) => a - b),
            ),
          ]
        : []),
    ];
  });
}

export function candidateAt(dimensions: readonly QuickDimension[], coordinate: Coordinate): Candidate {
  const candidate: Record<string, Record<string, number>> = {};
  dimensions.forEach(({ model, parameter, valueAt }, i) => {
    candidate[model] = { ...candidate[model], [parameter]: valueAt(coordinate[i]!) };
  });
  return candidate;
}

export const coordinateKey = (coordinate: Coordinate): string => coordinate.join(",");

export function distance(a: Coordinate, b: Coordinate): number {
  return Math.sqrt(a.reduce((sum, value, i) => sum + (value - b[i]!) ** 2, 0));
}

/** All coordinates within a Euclidean distance of a home, without the home, in lexical order. */
export function neighbourhood(
  home: Coordinate,
  radius: number,
  dimensions: readonly QuickDimension[],
): Coordinate[] {
  const reach = Math.floor(radius);
  let all: number[][] = [[]];
  dimensions.forEach(({ count }, i) => {
    const low = Math.max(0, home[i]! - reach);
    const high = Math.min(count - 1, home[i]! + reach);
    const values = Array.from({ length: Math.max(0, high - low + 1) }, (_, offset) => low + offset);
    // Prunes early: the distance only grows with further dimensions.
    all = all
      .flatMap((one) => values.map((value) => [...one, value]))
      .filter((one) => distance(one, home.slice(0, one.length)) <= radius);
  });
  return all.filter((one) => distance(one, home) > 0);
}
