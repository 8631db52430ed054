import type { CandidateResult } from "./candidate-result.js";
import type { Checkpoint } from "./checkpoint.js";
import type { AnalyzeLevel } from "./figures.js";
import type { SearchGoal } from "./goal.js";
import type { AnalyzeLoad } from "./load.js";
import type { AnalyzeMachine } from "./machine.js";
import type { Candidate } from "./variant-parameters.js";

/** Observer of a search. */
export interface AnalysisObserver {
  /** Called before a candidate is measured. */
  onBegin?(candidate: Candidate, levels: readonly AnalyzeLevel[]): void;
  /** Called after a turn of a candidate with its share of a measurement. */
  onTurn?(share: number): void;
  onResult?(result: CandidateResult): void;
  onPhase?(text: string): void;
  /** Called when the first of several writes of the checkpoint fails. */
  onCheckpointFault?(text: string): void;
}

/** Parts of an analysis. */
export interface AnalysisParts {
  readonly machine: AnalyzeMachine;
  readonly goal: SearchGoal;
  readonly load: AnalyzeLoad;
  readonly signal: AbortSignal;
  readonly observer?: AnalysisObserver;
  readonly checkpoint?: Checkpoint;
  /** Results of an interrupted search. */
  readonly earlier?: readonly CandidateResult[];
  /** Milliseconds of a clock that never goes back. */
  now(): number;
  /** Whether the time for the search would be over before the end of the next measurement. */
  isOverBudget?(): boolean;
}

/** Ends a search: it was interrupted, or its budget is used up. What was measured stays. */
export class SearchEnd extends Error {
  readonly reason: "interrupted" | "budget";

  constructor(reason: "interrupted" | "budget") {
    super(`the search ended early: ${reason}`);
    this.reason = reason;
  }
}
