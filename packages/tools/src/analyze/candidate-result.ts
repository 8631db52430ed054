import type { LevelRun } from "./figures.js";
import type { Candidate } from "./variant-parameters.js";

/** What became of a candidate. */
export interface CandidateResult {
  /** Number of the variant in the order of measurement; undefined for the default configuration. */
  readonly number?: number;
  readonly candidate: Candidate;
  readonly runs: readonly LevelRun[];
  /** Why the candidate has no measurement: it could not be loaded, or every request failed. */
  readonly fault?: string;
  /** The level is not one of the search: the run shows how long batches take. */
  readonly isCalibration?: boolean;
  /** An interruption came before its last level. */
  readonly isPartial?: boolean;
  /** The single measurements of which `runs` are the means, in their order; absent if there is one. */
  readonly rounds?: readonly (readonly LevelRun[])[];
}

/** What the simulation foretold for a candidate. */
export interface Prediction {
  readonly candidate: Candidate;
  readonly runs: readonly LevelRun[];
}

/** Name of a model's variant in results and in the output repository. */
export function variantName(model: string, number: number | undefined): string {
  return `${model}_config_${number ?? "default"}`;
}

/** Number of measured levels, which is the effort of a search. */
export function measurementCount(results: readonly CandidateResult[]): number {
  return results.reduce(
    (sum, { runs }) => runs.reduce((count, run) => count + (run.measurements ?? 1), sum),
    0,
  );
}
