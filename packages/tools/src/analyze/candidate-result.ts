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
  /** The comparison in turns whose means `runs` are. */
  readonly compared?: LeaderComparison;
}

/** A comparison of the leading candidates, which are measured in turns. */
export interface LeaderComparison {
  /** Equal for all candidates of a comparison. */
  readonly id: string;
  /** How often each of the candidates was measured. */
  readonly rounds: number;
  /** Runs of the search before the comparison. They count as measurements, but not for the order. */
  readonly before: readonly LevelRun[];
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
    (sum, { runs, compared }) =>
      sum + [...runs, ...(compared?.before ?? [])].reduce((count, run) => count + (run.measurements ?? 1), 0),
    0,
  );
}
