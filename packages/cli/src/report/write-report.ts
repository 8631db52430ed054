import { writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/**
 * Writes the file of a report.
 *
 * @returns undefined, or the text of the fault, for instance of a full disk
 */
export async function writeReport(path: string, text: string): Promise<string | undefined> {
  try {
    await writeFile(path, text);
    return undefined;
  } catch (error) {
    return reportFault(path, error);
  }
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

/** Whole microseconds of a time in milliseconds. */
export function microseconds(ms: number): number {
  return Number.isFinite(ms) ? Math.round(ms * 1000) : 0;
}

/** Six significant digits, as C++ prints a double. */
export function sixDigits(value: number): string {
  return Number.isFinite(value) ? String(Number(value.toPrecision(6))) : "0";
}

/** A time in the unit that suits it. */
export function duration(ms: number): string {
  if (!Number.isFinite(ms)) return "-";
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 1000) return `${Number(ms.toPrecision(3))} ms`;
  return `${Number((ms / 1000).toPrecision(3))} s`;
}

/** Rows as CSV. A value with a comma, a quote or a line break is quoted. */
export function csvTable(rows: readonly (readonly (string | number)[])[]): string {
  const cell = (value: string | number) => {
    const text = String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => `${row.map(cell).join(",")}\n`).join("");
}
