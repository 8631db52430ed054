import type { LoadLevel } from "../load/load-level.js";
import { countsConcurrency, levelValue, type WindowSummary } from "../measure/level-result.js";
import type { MeasureObserver } from "../measure/measure-level.js";
import { CLEAR_LINE, type ToolTerminal } from "../tool-command.js";
import { duration, sixDigits } from "./write-report.js";

/** Time after which a window that still runs gets a line, where lines are not written over. */
const LINE_MS = 10_000;

type ProgressOutput = Pick<ToolTerminal, "writeError" | "isInteractive" | "columns">;

/** Shows throughput, latency and queue while a level is measured: one line that changes, or a line for each window. */
export class LiveProgress implements MeasureObserver {
  #trial = 0;
  #queueMs: number | undefined;
  /** Milliseconds since the epoch; NaN before the first moment of a level. */
  #lineAt = Number.NaN;

  constructor(private readonly output: ProgressOutput) {}

  onLevelBegin(): void {
    this.#trial = 0;
    this.#queueMs = undefined;
    this.#lineAt = Number.NaN;
  }

  onMoment(level: LoadLevel, summary: WindowSummary): void {
    const text = `${name(level)}, window ${this.#trial + 1}: ${figures(summary, this.#queueMs)}`;
    if (this.output.isInteractive) this.output.writeError(CLEAR_LINE + fitted(text, this.output.columns));
    else if (Number.isNaN(this.#lineAt)) this.#lineAt = summary.start;
    else if (summary.end - this.#lineAt > LINE_MS) {
      this.output.writeError(`${text}\n`);
      this.#lineAt = summary.end;
    }
  }

  onWindow(level: LoadLevel, summary: WindowSummary, trial: number): void {
    this.#trial = trial;
    this.#queueMs = summary.queueMs;
    this.#lineAt = summary.end;
    if (this.output.isInteractive) return;
    this.output.writeError(`${name(level)}, window ${trial}: ${figures(summary, summary.queueMs)}\n`);
  }

  onLevel(): void {
    this.clear();
  }

  /** Removes the line, before something else is written. */
  clear(): void {
    if (this.output.isInteractive) this.output.writeError(CLEAR_LINE);
  }
}

/** A text that does not wrap: a wrapped line could not be written over. The last column stays free. */
export function fitted(text: string, columns = Number.POSITIVE_INFINITY): string {
  return text.slice(0, Math.max(0, columns - 1));
}

function name(level: LoadLevel): string {
  const value = sixDigits(levelValue(level));
  return countsConcurrency(level) ? `concurrency ${value}` : `${value} requests/s`;
}

function figures(summary: WindowSummary, queueMs: number | undefined): string {
  const parts = [
    `${sixDigits(summary.throughput)} infer/s`,
    `latency avg ${duration(summary.meanMs)}, p99 ${duration(summary.p99Ms)}`,
  ];
  if (queueMs !== undefined) parts.push(`queue ${duration(queueMs)}`);
  if (summary.failureCount > 0) parts.push(`${summary.failureCount} failed`);
  return parts.join(", ");
}
