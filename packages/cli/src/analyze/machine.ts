import type { ModelConfig } from "@tritonjs/protocol";
import { type AnalyzeLevel, bestRun, compareRuns, type LevelRun, type SearchGoal } from "./goal.js";
import type { Candidate, VariantParameters } from "./variant-parameters.js";

export interface OpenedCandidate {
  /**
   * Measures one level of load on all loaded models at the same time.
   *
   * @param share measures for this share of three windows, whether they agree or not; until the windows agree unless given
   */
  measure(level: AnalyzeLevel, signal: AbortSignal, share?: number): Promise<LevelRun>;
  close(): Promise<void>;
}

export interface AnalyzeMachine {
  /** Completed default configurations of the models whose configuration is varied, by name. */
  readonly configs: Readonly<Record<string, ModelConfig>>;
  /** Names of the models that get load: the tuned models, or the ensemble of which they are steps. */
  readonly loaded: readonly string[];
  readonly batchSize: number;
  /** Parameters that it cannot vary. @default none */
  readonly fixed?: readonly (keyof VariantParameters)[];
  /**
   * Loads a candidate.
   *
   * @throws TritonError for a configuration that cannot be loaded
   */
  open(candidate: Candidate): Promise<OpenedCandidate>;
  close(): Promise<void>;
  /** Writes the models of a result, ready to serve, into a repository. */
  writeVariants?(result: CandidateResult, folder: string): Promise<void>;
}

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

/** A result, an estimate or a prediction, as an order compares it. */
export type Ranked = Pick<CandidateResult, "runs">;

/** Positive if `a` is better than `b`, each at its best level. */
export function compareResults(a: Ranked, b: Ranked, goal: SearchGoal): number {
  const [runA, runB] = [bestRun(a.runs, goal), bestRun(b.runs, goal)];
  if (runA === undefined || runB === undefined)
    return Number(runA !== undefined) - Number(runB !== undefined);
  return compareRuns(runA, runB, goal);
}
