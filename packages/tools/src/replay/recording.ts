import { TritonError } from "@tritonjs/protocol";
import { type MeasuredBatch, median } from "../simulate/batch-durations.js";
import type { SimulatedRequest } from "../simulate/simulate.js";
import type { TraceRequest } from "./trace-request.js";

/** A batch of a recording. */
export interface RecordedBatch extends MeasuredBatch {
  readonly endMs: number;
  readonly instance: string;
  readonly cut: string | undefined;
  /** Arrival of the request that came last. */
  readonly lastArrivalMs: number;
  /** Arrival of the request that came first. */
  readonly firstArrivalMs: number;
}

/** What a trace tells about one model. */
export interface Recording {
  readonly modelName: string;
  /** Requests that ran, in the order in which they arrived; the first one at 0. */
  readonly requests: readonly SimulatedRequest[];
  /** Milliseconds from the arrival of each request to its response. */
  readonly latenciesMs: Float64Array;
  readonly batches: readonly RecordedBatch[];
  /** Number of instances that ran batches. */
  readonly instances: number;
  readonly durationMs: number;
  /** Requests that ran in no batch: refused, cancelled, or answered by the response cache. */
  readonly leftOut: number;
  /** Median milliseconds from the end of a batch to the end of its requests. */
  readonly respondMs: number;
  /** Median milliseconds from the arrival of a request to the start of its batch, for an idle instance. */
  readonly wakeMs: number;
  /** Median milliseconds between two batches of a busy instance. */
  readonly gapMs: number;
}

/** Batches that must be complete before a recording is taken for a sample. */
const SAMPLED_SHARE = 0.02;

/**
 * Selects the requests of one model, and puts its batches together.
 *
 * @param modelName may be absent for a trace of one model
 * @throws TritonError NOT_FOUND for a model that is not in the trace, INVALID_ARG for a trace of several models without
 * a name, and for a trace of only some of the requests
 */
export function recordingOf(trace: readonly TraceRequest[], modelName?: string): Recording {
  const names = [...new Set(trace.map((one) => one.modelName))];
  if (names.length === 0) {
    throw new TritonError(
      "INVALID_ARG",
      "cannot replay the trace: expected requests with timestamps, got none; record with level TIMESTAMPS",
    );
  }
  if (modelName === undefined && names.length > 1) {
    throw new TritonError(
      "INVALID_ARG",
      `cannot replay the trace: it has several models, so name one with --model: ${names.join(", ")}`,
    );
  }
  const name = modelName ?? names[0]!;
  const all = trace.filter((one) => one.modelName === name);
  if (all.length === 0) {
    throw new TritonError("NOT_FOUND", `model '${name}' is not in the trace, which has ${names.join(", ")}`);
  }
  const ran = all.filter((one) => one.batch !== undefined);
  if (ran.length === 0) {
    throw new TritonError(
      "INVALID_ARG",
      `cannot replay model '${name}': no request of the trace ran in a batch`,
    );
  }
  const origin = ran[0]!.queueStartMs;
  const groups = batchGroups(ran);
  const rows = new Map(groups.flatMap((group) => rowsOf(group)));
  const batches = groups.map((group) => batchOf(group, rows, origin)).sort((a, b) => a.startMs - b.startMs);
  refuseSample(name, groups);
  const requests = ran.map(
    (one): SimulatedRequest => ({
      atMs: one.queueStartMs - origin,
      rows: rows.get(one)!,
      ...(one.priority === undefined ? {} : { priority: one.priority }),
      ...(one.queueTimeoutMicroseconds === undefined
        ? {}
        : { queueTimeoutMicroseconds: one.queueTimeoutMicroseconds }),
      ...(one.sequence === undefined ? {} : { sequence: one.sequence }),
    }),
  );
  const { wakeMs, gapMs } = pausesOf(batches);
  return {
    modelName: name,
    requests,
    latenciesMs: Float64Array.from(ran, (one) => one.endMs - one.queueStartMs),
    batches,
    instances: new Set(batches.map(({ instance }) => instance)).size,
    durationMs: Math.max(...ends(ran)) - origin,
    leftOut: all.length - ran.length,
    respondMs: median(ran.map((one) => Math.max(0, one.endMs - one.batch!.endMs))),
    wakeMs,
    gapMs,
  };
}

function* ends(requests: readonly TraceRequest[]): Generator<number> {
  let latest = Number.NEGATIVE_INFINITY;
  for (const { endMs } of requests) latest = Math.max(latest, endMs);
  yield latest;
}

/** Groups the requests that ran in one batch: they have the same times and the same instance. */
function batchGroups(ran: readonly TraceRequest[]): TraceRequest[][] {
  const groups = new Map<string, TraceRequest[]>();
  for (const one of ran) {
    const { startMs, endMs, instance = "" } = one.batch!;
    const key = `${instance} ${startMs} ${endMs}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [one]);
    else group.push(one);
  }
  return [...groups.values()];
}

/** Rows of each request: as recorded, else an equal share of the batch, else 1. */
function rowsOf(group: readonly TraceRequest[]): [TraceRequest, number][] {
  const { rows, requests = group.length } = group[0]!.batch!;
  const share = rows === undefined ? 1 : Math.max(1, Math.round(rows / requests));
  return group.map((one) => [one, one.rows ?? share]);
}

function batchOf(
  group: readonly TraceRequest[],
  rowsOfRequest: ReadonlyMap<TraceRequest, number>,
  originMs: number,
): RecordedBatch {
  const { startMs, endMs, instance = "", cut, rows } = group[0]!.batch!;
  let [first, last, sum] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0];
  for (const one of group) {
    first = Math.min(first, one.queueStartMs);
    last = Math.max(last, one.queueStartMs);
    sum += rowsOfRequest.get(one)!;
  }
  return {
    rows: rows ?? sum,
    startMs: startMs - originMs,
    endMs: endMs - originMs,
    durationMs: endMs - startMs,
    instance,
    cut,
    firstArrivalMs: first - originMs,
    lastArrivalMs: last - originMs,
  };
}

/** A trace of every n-th request does not tell how many requests waited, so nothing can be predicted from it. */
function refuseSample(name: string, groups: readonly (readonly TraceRequest[])[]): void {
  let [missing, total] = [0, 0];
  for (const group of groups) {
    const { requests = group.length } = group[0]!.batch!;
    total += requests;
    missing += Math.max(0, requests - group.length);
  }
  if (missing / total <= SAMPLED_SHARE) return;
  throw new TritonError(
    "INVALID_ARG",
    `cannot replay model '${name}': the trace has ${total - missing} of the ${total} requests of its batches; ` +
      "record every request with rate 1",
  );
}

/** Time that the server itself needs before a batch of an idle instance, and between two batches of a busy one. */
function pausesOf(batches: readonly RecordedBatch[]): { wakeMs: number; gapMs: number } {
  const lastEnd = new Map<string, number>();
  const wakes: number[] = [];
  const gaps: number[] = [];
  for (const { instance, startMs, endMs, firstArrivalMs, lastArrivalMs, cut } of batches) {
    const freeAt = lastEnd.get(instance) ?? Number.NEGATIVE_INFINITY;
    if (firstArrivalMs >= freeAt && cut !== "DELAY") wakes.push(startMs - lastArrivalMs);
    else if (lastArrivalMs <= freeAt) gaps.push(startMs - freeAt);
    lastEnd.set(instance, endMs);
  }
  const typical = (values: number[]) => (values.length === 0 ? 0 : Math.max(0, median(values)));
  return { wakeMs: typical(wakes), gapMs: typical(gaps) };
}
