import { writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { TritonError } from "@tritonjs/protocol";
import { CLEAR_LINE, type ToolTerminal } from "../command/tool-command.js";
import { countsConcurrency, type LoadLevel, levelValue } from "../load/load-level.js";
import type { WindowSummary } from "../measure/level-result.js";
import type { MeasureObserver } from "../measure/measure-level.js";

/** Writes the file of a report. @returns undefined, or the text of the fault, for instance of a full disk */
export async function writeReport(path: string, text: string): Promise<string | undefined> {
  try {
    await writeFile(path, text);
    return undefined;
  } catch (error) {
    return reportFault(path, error);
  }
}

/** Writes a value as a JSON file, if a path is given. @throws TritonError INTERNAL with the text of the fault */
export async function writeJsonReport(path: string | undefined, value: unknown): Promise<void> {
  const fault = path && (await writeReport(path, `${JSON.stringify(value, undefined, 2)}\n`));
  if (fault) throw new TritonError("INTERNAL", fault);
}

export function reportFault(path: string, error: unknown): string {
  return `cannot write ${path}: ${error instanceof Error ? error.message : String(error)}`;
}

/** Path of the CSV file of a composing model: its name and version before the file's own name. */
export function composingPath(
  path: string,
  { name, version }: { readonly name: string; readonly version: string },
) {
  // The name comes from a server, so it must not lead elsewhere.
  const safe = `${name}_v${version}`.replaceAll(/[/\\]/g, "_");
  return join(dirname(path), `${safe}.${basename(path)}`);
}

/** Conditions of a measurement, for its reports. */
export interface RunDescription {
  readonly serviceKind: "triton" | "triton_c_api" | "openai";
  readonly model: string;
  readonly version: string;
  readonly url: string;
  readonly protocol: "http" | "grpc";
  readonly batchSize: number;
  readonly mode: "time_windows" | "count_windows";
  readonly intervalMs: number;
  readonly windowRequestCount: number;
  readonly requestCount?: number;
  readonly percentile?: number;
  readonly stabilityPercentage: number;
  readonly latencyLimitMs?: number;
  /** Unit of the levels. */
  readonly load: "concurrency" | "request_rate" | "request_intervals";
  /** Highest level of the range; 0 for no limit. */
  readonly highestLevel: number;
  /** Distribution of the gaps between requests. */
  readonly distribution?: "constant" | "poisson";
  readonly binarySearch: boolean;
  readonly asynchronous: boolean;
  readonly streaming: boolean;
  readonly decoupled: boolean;
  readonly isSequenceModel: boolean;
  /** Command line, for the HTML report and the JSON files. */
  readonly command: string;
  readonly toolVersion: string;
}

export function microseconds(ms: number): number {
  return Number.isFinite(ms) ? Math.round(ms * 1000) : 0;
}

/** Six significant digits, as C++ prints a double. */
export function sixDigits(value: number): string {
  return Number.isFinite(value) ? String(Number(value.toPrecision(6))) : "0";
}

/** About three significant digits. */
export function decimals(value: number): string {
  if (Number.isNaN(value)) return "-";
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

export function duration(ms: number): string {
  if (!Number.isFinite(ms)) return "-";
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 1000) return `${Number(ms.toPrecision(3))} ms`;
  return `${Number((ms / 1000).toPrecision(3))} s`;
}

/**
 * Rows in columns for a terminal. Cells are at the right of their columns.
 *
 * @param left columns whose cells are at the left, by their numbers
 */
export function alignedTable(rows: readonly (readonly string[])[], left: readonly number[] = [0]): string[] {
  const widths = rows[0]!.map((_, i) => Math.max(...rows.map((row) => row[i]!.length)));
  return rows.map((row) =>
    row
      .map((cell, i) => (left.includes(i) ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)))
      .join("  ")
      .trimEnd(),
  );
}

/** Rows as CSV. A value with a comma, a quote or a line break is quoted. */
export function csvTable(rows: readonly (readonly (string | number)[])[]): string {
  const cell = (value: string | number) => {
    const text = String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => `${row.map(cell).join(",")}\n`).join("");
}

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
