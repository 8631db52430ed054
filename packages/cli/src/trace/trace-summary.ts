import type { TraceRequest } from "./read-trace.js";

/** Milliseconds of many requests. */
export interface TraceDurations {
  readonly mean: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

/** Figures of one model in a trace. */
export interface ModelTraceSummary {
  readonly model: string;
  readonly version: number;
  readonly requests: number;
  /** Requests that ran in no batch: refused, cancelled, answered by the response cache, or of an ensemble. */
  readonly withoutBatch: number;
  readonly batches: number;
  /** Mean rows of a batch. Undefined for files of servers that do not record rows. */
  readonly meanRows?: number;
  /** Numbers of batches by the reason why they were cut. */
  readonly cuts: Readonly<Record<string, number>>;
  /** Milliseconds from arrival to response. */
  readonly latencyMs: TraceDurations;
  /** Milliseconds in the queue, of requests that ran in a batch. */
  readonly queueMs?: TraceDurations;
  /** Milliseconds of their batches. */
  readonly computeMs?: TraceDurations;
}

/** Figures of a trace. */
export interface TraceSummary {
  /** By name and version. */
  readonly models: readonly ModelTraceSummary[];
  /** Requests with the highest latency, slowest first. */
  readonly slowest: readonly TraceRequest[];
}

/**
 * Summarizes a trace.
 *
 * @param slowest number of the slowest requests to list
 */
export function summarizeTrace(trace: readonly TraceRequest[], slowest = 5): TraceSummary {
  const groups = new Map<string, TraceRequest[]>();
  for (const request of trace) {
    const key = `${request.modelName}\n${String(request.modelVersion).padStart(20)}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [request]);
    else group.push(request);
  }
  const models = [...groups.entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, all]) => modelSummary(all));
  const byLatency = [...trace].sort((a, b) => latencyOf(b) - latencyOf(a));
  return { models, slowest: byLatency.slice(0, slowest) };
}

/** Milliseconds from the arrival of a request at its model to its response. */
function latencyOf({ queueStartMs, endMs }: TraceRequest): number {
  return Math.max(0, endMs - queueStartMs);
}

/** A key that the requests of one batch share: the instance and the times of its execution. */
export function batchKey({ modelName, modelVersion, batch }: TraceRequest): string | undefined {
  if (batch === undefined) return undefined;
  return JSON.stringify([modelName, modelVersion, batch.instance ?? "", batch.startMs, batch.endMs]);
}

function modelSummary(all: readonly TraceRequest[]): ModelTraceSummary {
  const batches = new Map<string, NonNullable<TraceRequest["batch"]>>();
  const queueMs: number[] = [];
  const computeMs: number[] = [];
  for (const request of all) {
    const { batch, queueStartMs } = request;
    if (batch === undefined) continue;
    batches.set(batchKey(request)!, batch);
    queueMs.push(Math.max(0, batch.startMs - queueStartMs));
    computeMs.push(batch.endMs - batch.startMs);
  }
  const rows = [...batches.values()].flatMap((batch) => batch.rows ?? []);
  const cuts: Record<string, number> = {};
  for (const { cut } of batches.values()) if (cut !== undefined) cuts[cut] = (cuts[cut] ?? 0) + 1;
  return {
    model: all[0]!.modelName,
    version: all[0]!.modelVersion,
    requests: all.length,
    withoutBatch: all.length - queueMs.length,
    batches: batches.size,
    ...(rows.length === 0 ? {} : { meanRows: mean(rows) }),
    cuts,
    latencyMs: durations(all.map(latencyOf)),
    ...(queueMs.length === 0 ? {} : { queueMs: durations(queueMs), computeMs: durations(computeMs) }),
  };
}

/** Exact figures, by the nearest rank. */
function durations(values: readonly number[]): TraceDurations {
  const sorted = Float64Array.from(values).sort();
  const rank = (share: number) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!;
  return { mean: mean(values), p50: rank(0.5), p90: rank(0.9), p99: rank(0.99), max: rank(1) };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

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
