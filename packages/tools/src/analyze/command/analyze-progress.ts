import { CLEAR_LINE, fitted } from "../../report/live-progress.js";
import { duration } from "../../report/number-texts.js";
import type { Analysis } from "../analysis.js";
import type { AnalysisObserver } from "../analysis-parts.js";
import type { CandidateResult } from "../candidate-result.js";
import type { AnalyzeLevel } from "../figures.js";
import { totalsOf } from "../outcome.js";
import { candidateText, shortNumber } from "../report/result-cells.js";
import type { Candidate } from "../variant-parameters.js";

/** Where progress is written. */
export interface AnalyzeOutput {
  writeError(text: string): void;
  readonly isInteractive?: boolean;
  readonly columns?: number | undefined;
}

/** Shows each measurement, and how long the rest of the search will take. */
export class AnalyzeProgress implements AnalysisObserver {
  readonly #output: AnalyzeOutput;
  readonly #now: () => number;
  readonly #budgetMs: number | undefined;
  readonly #startMs: number;
  #beganMs: number | undefined;
  #spentMs = 0;
  #count = 0;
  #longestTurnMs = 0;
  #analysis: Analysis | undefined;

  constructor(output: AnalyzeOutput, now: () => number, budgetMs: number | undefined) {
    this.#output = output;
    this.#now = now;
    this.#budgetMs = budgetMs;
    this.#startMs = now();
  }

  attach(analysis: Analysis): void {
    this.#analysis = analysis;
  }

  get elapsedMs(): number {
    return this.#now() - this.#startMs;
  }

  /** Whether the next turn of a measurement may end after the budget. */
  isOverBudget(): boolean {
    return this.#budgetMs !== undefined && this.elapsedMs + this.#longestTurnMs > this.#budgetMs;
  }

  onPhase(text: string): void {
    this.#line(text);
  }

  onCheckpointFault(text: string): void {
    this.#line(`error: ${text}; the search goes on`);
  }

  onBegin(candidate: Candidate, levels: readonly AnalyzeLevel[]): void {
    this.#beganMs = this.#now();
    if (!this.#output.isInteractive) return;
    const load = levels.map(({ value }) => shortNumber(value)).join(", ");
    const text = `${candidateText({ candidate })} at load ${load}${this.#left()}`;
    this.#output.writeError(CLEAR_LINE + fitted(text, this.#output.columns));
  }

  onTurn(share: number): void {
    const turnMs = this.#beganMs === undefined ? 0 : this.#now() - this.#beganMs;
    this.#longestTurnMs = Math.max(this.#longestTurnMs, turnMs);
    this.#beganMs = undefined;
    if (share === 0) return;
    this.#spentMs += turnMs;
    this.#count += share;
  }

  onResult(result: CandidateResult): void {
    if (this.#beganMs !== undefined) this.onTurn(1);
    const text = candidateText(result);
    if (result.runs.length === 0) {
      this.#line(`${text}: skipped, ${result.fault ?? "no measurement"}`);
      return;
    }
    const figures = result.runs.map((run) => {
      const { throughput, p99Ms } = totalsOf(run);
      return `${shortNumber(throughput)} infer/s, p99 ${duration(p99Ms)}`;
    });
    this.#line(`${text}: ${figures.join("; ")}${this.#left()}`);
  }

  /** Expected time left, from the mean of the measurements so far and the rest of the budget. */
  #left(): string {
    const expected = this.#analysis?.expected ?? 0;
    if (expected === 0 || this.#count === 0) return "";
    const byCount = (expected * this.#spentMs) / this.#count;
    const byBudget = this.#budgetMs === undefined ? byCount : Math.max(0, this.#budgetMs - this.elapsedMs);
    return ` (about ${duration(Math.min(byCount, byBudget))} left)`;
  }

  #line(text: string): void {
    this.#output.writeError(`${this.#output.isInteractive ? CLEAR_LINE : ""}${text}\n`);
  }
}
