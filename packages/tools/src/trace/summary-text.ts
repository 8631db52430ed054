import type { TraceRequest } from "../replay/trace-request.js";
import {
  latencyOf,
  type ModelTraceSummary,
  type TraceDurations,
  type TraceSummary,
} from "./trace-summary.js";

/** Characters of a line. */
const WIDTH = 80;

/** Characters of the column of names, of each column of figures, and of a request's name beside its timeline. */
const NAMES = 22;
const COLUMN = 11;
const REQUEST = 26;

const QUANTILES = ["mean", "p50", "p90", "p99", "max"] as const;

/** Writes a summary as text. Lines have at most 80 characters. */
export function traceSummaryText({ models, slowest }: TraceSummary): string {
  return `${[...models.flatMap(modelLines), ...slowestLines(slowest)].join("\n")}\n`;
}

function modelLines(model: ModelTraceSummary): string[] {
  const { requests, withoutBatch, batches, meanRows, cuts } = model;
  const rows = meanRows === undefined ? "" : `, ${decimals(meanRows)} rows on average`;
  const reasons = Object.entries(cuts).sort(([, a], [, b]) => b - a);
  return [
    cutOff(`${model.model} version ${model.version}`, WIDTH),
    `  ${counted(requests, "request")} in ${counted(batches, "batch", "batches")}${rows}`,
    ...(withoutBatch === 0 ? [] : [`  ${counted(withoutBatch, "request")} ran in no batch of this model`]),
    ...(reasons.length === 0
      ? []
      : wrapped(`  batches cut by ${reasons.map(([reason, count]) => `${reason} ${count}`).join(", ")}`)),
    `${"  milliseconds".padEnd(NAMES)}${QUANTILES.map((name) => name.padStart(COLUMN)).join("")}`,
    durationsLine("latency", model.latencyMs),
    ...(model.queueMs === undefined ? [] : [durationsLine("in the queue", model.queueMs)]),
    ...(model.computeMs === undefined ? [] : [durationsLine("compute", model.computeMs)]),
    "",
  ];
}

function durationsLine(name: string, durations: TraceDurations): string {
  const figures = QUANTILES.map((quantile) => decimals(durations[quantile]).padStart(COLUMN));
  return `  ${name}`.padEnd(NAMES) + figures.join("");
}

/** The slowest requests, with a bar each on one scale: the time in the queue, the batch, and what came after it. */
function slowestLines(requests: readonly TraceRequest[]): string[] {
  if (requests.length === 0) return [];
  const longest = latencyOf(requests[0]!);
  const room = WIDTH - REQUEST - COLUMN - 2;
  return [
    "Slowest requests, in milliseconds (. queue, # batch, - after it)",
    ...requests.map((request) => {
      const { id, requestId, modelName } = request;
      const name = cutOff(`${modelName} ${requestId ?? `#${id}`}`, REQUEST - 1).padEnd(REQUEST);
      return `${name}${decimals(latencyOf(request)).padStart(COLUMN)}  ${bar(request, room / (longest || 1))}`.trimEnd();
    }),
  ];
}

function bar(request: TraceRequest, charactersPerMs: number): string {
  const { batch, queueStartMs } = request;
  const at = (ms: number) => Math.round(Math.max(0, ms - queueStartMs) * charactersPerMs);
  const end = at(request.endMs);
  if (batch === undefined) return ".".repeat(end);
  const start = Math.min(end, at(batch.startMs));
  const computed = Math.min(end, Math.max(start, at(batch.endMs)));
  return ".".repeat(start) + "#".repeat(computed - start) + "-".repeat(end - computed);
}

function counted(count: number, one: string, several = `${one}s`): string {
  return `${count} ${count === 1 ? one : several}`;
}

/** Breaks a line at commas. */
function wrapped(text: string): string[] {
  const lines = [""];
  for (const part of text.split(/(?<=, )/)) {
    if (`${lines.at(-1)}${part}`.trimEnd().length > WIDTH) lines.push("    ");
    lines[lines.length - 1] += part;
  }
  return lines.map((line) => line.trimEnd());
}

/** Text of clients in one line without control characters. */
function cutOff(text: string, length: number): string {
  const line = text.replace(/\p{Cc}/gu, "?");
  return line.length <= length ? line : `${line.slice(0, length - 1)}…`;
}

function decimals(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}
