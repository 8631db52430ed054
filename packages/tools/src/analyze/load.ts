import type { AnalyzeLevel } from "./figures.js";

/** Load that candidates get. */
export type AnalyzeLoad =
  | { readonly kind: "levels"; readonly levels: readonly AnalyzeLevel[] }
  /** Two batches in flight for each instance, within bounds. It is Model Analyzer's rule for its quick search. */
  | { readonly kind: "automatic"; readonly min: number; readonly max: number };

/** Rows that a candidate can run at the same time. */
export interface Capacity {
  readonly maxBatchSize: number;
  readonly instances: number;
}

/** Levels at which a candidate is measured. */
export function levelsOf(load: AnalyzeLoad, capacity: Capacity, rows: number): readonly AnalyzeLevel[] {
  if (load.kind === "levels") return load.levels;
  const value = Math.min(load.max, Math.max(load.min, fullConcurrency(capacity, rows)));
  return [{ mode: "concurrency", value }];
}

/** Requests in flight that keep a second batch ready for each instance. */
export function fullConcurrency(capacity: Capacity, rows: number): number {
  return Math.max(1, Math.ceil((2 * rowsOf(capacity)) / rows));
}

/** Requests in flight that fill one batch of each instance. */
export function busyConcurrency(capacity: Capacity, rows: number): number {
  return Math.max(1, Math.ceil(rowsOf(capacity) / rows));
}

const rowsOf = ({ maxBatchSize, instances }: Capacity) => Math.max(1, maxBatchSize) * instances;
