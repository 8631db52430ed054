import { Heap, queueOptions } from "@tritonjs/core/internal";
import { TritonError } from "@tritonjs/protocol";
import type { SimulatedRequest } from "../simulate/simulate.js";
import type { TraceRequest } from "./read-trace.js";

interface RecordedBatch extends MeasuredBatch {
  readonly endMs: number;
  readonly instance: string;
  readonly cut: string | undefined;
  readonly lastArrivalMs: number;
  readonly firstArrivalMs: number;
}

/** The requests and batches of one model in a trace. */
export interface Recording {
  readonly modelName: string;
  /** Requests that ran or were refused, in the order in which they arrived; the first one at 0. */
  readonly requests: readonly SimulatedRequest[];
  /** Milliseconds from the arrival of each request to its response; NaN for a request that was refused. */
  readonly latenciesMs: Float64Array;
  /** Milliseconds from the start of each request's batch to its end; NaN for a request that ran in none. */
  readonly ownDurationsMs: Float64Array;
  /** Number of refused requests, by reason. */
  readonly refusals: ReadonlyMap<string, number>;
  /** Number of requests with deadlines that were lost, by level, caller and cause. */
  readonly lateCauses: ReadonlyMap<string, Readonly<Record<string, number>>>;
  readonly batches: readonly RecordedBatch[];
  /** Number of instances that ran batches. */
  readonly instances: number;
  /** Largest number of batches that an instance ran at a time. */
  readonly concurrency: number;
  readonly durationMs: number;
  /** Requests that ran in no batch and were not refused: cancelled, or answered by the response cache. */
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
  const arrived = all.filter((one) => one.batch !== undefined || one.refused !== undefined);
  const origin = arrived.reduce((first, one) => Math.min(first, one.queueStartMs), Number.POSITIVE_INFINITY);
  const groups = batchGroups(ran);
  const rows = new Map(groups.flatMap((group) => rowsOf(group)));
  const batches = groups.map((group) => batchOf(group, rows, origin)).sort((a, b) => a.startMs - b.startMs);
  refuseSample(name, groups, all.filter(({ batch, wasTaken }) => wasTaken && batch === undefined).length);
  arrived.sort((a, b) => a.queueStartMs - b.queueStartMs);
  const requests = arrived.map(
    (one): SimulatedRequest => ({
      atMs: one.queueStartMs - origin,
      rows: rows.get(one) ?? one.rows ?? 1,
      ...queueOptions(one),
      limitMs: one.limitMs,
      endsAtLimit: one.endsAtLimit,
      caller: one.caller,
      sequence: one.sequence,
    }),
  );
  const { wakeMs, gapMs } = pausesOf(batches);
  return {
    modelName: name,
    requests,
    latenciesMs: Float64Array.from(arrived, (one) =>
      one.refused === undefined ? one.endMs - one.queueStartMs : Number.NaN,
    ),
    ownDurationsMs: Float64Array.from(arrived, ({ batch }) =>
      batch === undefined ? Number.NaN : batch.endMs - batch.startMs,
    ),
    refusals: countBy(arrived.flatMap(({ refused }) => refused ?? [])),
    lateCauses: causesByClass(arrived),
    batches,
    instances: new Set(batches.map(({ instance }) => instance)).size,
    concurrency: mostAtATime(batches),
    durationMs: ran.reduce((latest, { endMs }) => Math.max(latest, endMs), origin) - origin,
    leftOut: all.length - arrived.length,
    respondMs: median(ran.map((one) => Math.max(0, one.endMs - one.batch!.endMs))),
    wakeMs,
    gapMs,
  };
}

/** Adds up how often each text is there. */
function countBy(texts: Iterable<string>): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return counts;
}

/** Key of a class in {@link Recording.lateCauses}. */
export function classKey(level: number, caller: string): string {
  return `${level} ${caller}`;
}

function causesByClass(all: readonly TraceRequest[]): ReadonlyMap<string, Readonly<Record<string, number>>> {
  const groups = groupBy(
    all.filter(({ late }) => late !== undefined),
    ({ priority = 0, caller = "" }) => classKey(priority, caller),
  );
  return new Map(
    [...groups].map(([key, group]) => [key, Object.fromEntries(countBy(group.map(({ late }) => late!)))]),
  );
}

/** Largest number of batches that one instance ran at a time. */
function mostAtATime(batches: readonly RecordedBatch[]): number {
  let most = 1;
  for (const own of groupBy(batches, ({ instance }) => instance).values()) {
    const ends = new Heap<number>((a, b) => a - b);
    let running = 0;
    for (const { startMs, endMs } of own) {
      while (ends.first !== undefined && ends.first <= startMs) {
        ends.take();
        running--;
      }
      ends.add(endMs);
      most = Math.max(most, ++running);
    }
  }
  return most;
}

function batchGroups(ran: readonly TraceRequest[]): TraceRequest[][] {
  const groups = groupBy(ran, ({ batch }) => `${batch!.instance ?? ""} ${batch!.startMs} ${batch!.endMs}`);
  return [...groups.values()];
}

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

/**
 * A trace of every n-th request does not tell how many requests waited, so nothing can be predicted from it.
 *
 * @param cutShort number of requests whose time was over before their batch was
 */
function refuseSample(name: string, groups: readonly (readonly TraceRequest[])[], cutShort: number): void {
  let [missing, total] = [-cutShort, 0];
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

interface MeasuredBatch {
  readonly rows: number;
  readonly startMs: number;
  readonly durationMs: number;
}

/** Duration of a batch as a line: `fixedMs + perRowMs * rows`. */
interface DurationLine {
  readonly fixedMs: number;
  readonly perRowMs: number;
}

const ENOUGH = 5;

/**
 * A batch that took more than this many times the typical duration was held up: what it took beyond the typical duration
 * is a pause of the machine.
 */
const SLOWEST = 2;

/**
 * Durations of batches, learned from measured ones. Each is the typical duration of its size, changed as the machine
 * was faster or slower than usual at that moment. So a moment at which the machine was held up stays one.
 */
export class BatchDurations {
  readonly line: DurationLine;
  readonly #medians = new Map<number, number>();
  /** By start. */
  readonly #batches: readonly MeasuredBatch[];

  constructor(batches: readonly MeasuredBatch[]) {
    if (batches.length === 0) throw new RangeError("expected at least one measured batch, got none");
    this.#batches = [...batches].sort((a, b) => a.startMs - b.startMs);
    const bySize = new Map(
      [...groupBy(batches, ({ rows }) => rows)].map(([rows, all]) => [
        rows,
        all.map((one) => one.durationMs),
      ]),
    );
    this.line = fitLine(bySize);
    for (const [rows, durations] of bySize) {
      if (durations.length >= ENOUGH) this.#medians.set(rows, median(durations));
    }
  }

  /** Typical milliseconds of a batch: the median of its size, or the line for a size that was seldom measured. */
  typical(rows: number): number {
    return this.#medians.get(rows) ?? this.line.fixedMs + this.line.perRowMs * rows;
  }

  /** Milliseconds of a batch that starts at `atMs`. */
  at(atMs: number, rows: number): number {
    const measured = this.#batches[this.#indexAt(atMs)]!;
    const usual = this.typical(measured.rows);
    if (usual <= 0) return this.typical(rows);
    const { startMs, durationMs } = measured;
    const pauseMs = durationMs > SLOWEST * usual ? durationMs - usual : 0;
    // A batch that starts later is held up for the rest of the pause only.
    const leftMs = Math.min(pauseMs, Math.max(0, startMs + durationMs - atMs));
    return (this.typical(rows) * (durationMs - pauseMs)) / usual + leftMs;
  }

  #indexAt(atMs: number): number {
    let [low, high] = [0, this.#batches.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.#batches[middle]!.startMs <= atMs) low = middle;
      else high = middle;
    }
    return low;
  }
}

/**
 * Fits a line by least squares to the median of each size, weighted by the number of batches. A median is not affected by
 * a few batches that the machine has held up. Neither part of the line is negative.
 */
function fitLine(bySize: ReadonlyMap<number, readonly number[]>): DurationLine {
  let [weights, meanRows, meanMs] = [0, 0, 0];
  const points = [...bySize].map(([rows, durations]) => ({
    rows,
    ms: median(durations),
    weight: durations.length,
  }));
  for (const { rows, ms, weight } of points) {
    weights += weight;
    meanRows += rows * weight;
    meanMs += ms * weight;
  }
  meanRows /= weights;
  meanMs /= weights;
  let [covariance, variance] = [0, 0];
  for (const { rows, ms, weight } of points) {
    covariance += weight * (rows - meanRows) * (ms - meanMs);
    variance += weight * (rows - meanRows) ** 2;
  }
  const slope = variance === 0 ? 0 : Math.max(0, covariance / variance);
  const fixedMs = meanMs - slope * meanRows;
  return fixedMs >= 0
    ? { fixedMs, perRowMs: slope }
    : { fixedMs: 0, perRowMs: meanMs / Math.max(1, meanRows) };
}

/** Middle value; the mean of the two middle ones for an even count. NaN for no values. */
function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

export function groupBy<Item, Key>(items: Iterable<Item>, keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}
