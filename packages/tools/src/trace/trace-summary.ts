import type { TraceRequest } from "../replay/trace-request.js";

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
export function latencyOf({ queueStartMs, endMs }: TraceRequest): number {
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
