import type { ModelConfig } from "@tritonjs/protocol";
import type { CandidateResult } from "./candidate-result.js";
import type { AnalyzeLevel, LevelRun } from "./figures.js";
import type { Candidate, VariantParameters } from "./variant-parameters.js";

/** A candidate that is loaded. */
export interface OpenedCandidate {
  /**
   * Measures one level of load on all loaded models at the same time.
   *
   * @param share measures for this share of three windows, whether they agree or not; until the windows agree unless given
   */
  measure(level: AnalyzeLevel, signal: AbortSignal, share?: number): Promise<LevelRun>;
  close(): Promise<void>;
}

/** Where candidates run. */
export interface AnalyzeMachine {
  /** Completed default configurations of the models whose configuration is varied, by name. */
  readonly configs: Readonly<Record<string, ModelConfig>>;
  /** Names of the models that get load: the tuned models, or the ensemble of which they are steps. */
  readonly loaded: readonly string[];
  /** Rows of each request. */
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
