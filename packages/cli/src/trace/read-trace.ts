import { readFile } from "node:fs/promises";
import { type QueueOptions, queueOptions, readTracedQueueOptions } from "@tritonjs/core/internal";
import { TritonError } from "@tritonjs/protocol";
import type { SimulatedRequest } from "../simulate/simulate.js";

const NS_PER_MS = 1e6;

/** Entry of a trace file, whose fields are not known to be right. */
type Entry = Readonly<Record<string, unknown>>;

interface Collected {
  readonly times: Map<string, number>;
  header: Entry | undefined;
  batch: Entry | undefined;
  request: Entry | undefined;
}

/**
 * Reads trace files in Triton's format. Requests without the timestamps of a model are left out: they reached none.
 *
 * @param paths files of one recording, in any order: `trace.json`, or `trace.json.0`, `trace.json.1`, ...
 * @returns requests of all models in the order in which they arrived
 * @throws TritonError INVALID_ARG for a file that cannot be read, or is not a trace
 */
export async function readTrace(paths: readonly string[]): Promise<TraceRequest[]> {
  const requests: TraceRequest[] = [];
  for (const path of paths) {
    const byId = new Map<number, Collected>();
    for (const [index, entry] of (await readEntries(path)).entries()) collect(byId, entry, path, index);
    for (const one of byId.values()) {
      const request = toRequest(one);
      if (request !== undefined) requests.push(request);
    }
  }
  return requests.sort((a, b) => a.queueStartMs - b.queueStartMs);
}

async function readEntries(path: string): Promise<readonly unknown[]> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    throw invalid(path, (error as Error).message);
  }
  // A server that was killed has not written the end of the list.
  const trimmed = text.trimEnd();
  const whole = trimmed.endsWith("]") ? trimmed : `${trimmed.replace(/,$/, "")}]`;
  let entries: unknown;
  try {
    entries = JSON.parse(whole);
  } catch (error) {
    throw invalid(path, `expected JSON, got ${(error as Error).message}`);
  }
  if (!Array.isArray(entries)) throw invalid(path, "expected a JSON array of trace entries");
  return entries;
}

function collect(byId: Map<number, Collected>, entry: unknown, path: string, index: number): void {
  if (!isObject(entry) || typeof entry.id !== "number") {
    throw invalid(path, `expected an object with a number \`id\` as entry ${index}`);
  }
  let one = byId.get(entry.id);
  if (one === undefined) {
    one = { times: new Map(), header: undefined, batch: undefined, request: undefined };
    byId.set(entry.id, one);
  }
  if (typeof entry.model_name === "string") one.header = entry;
  if (isObject(entry.batch)) one.batch = entry.batch;
  if (isObject(entry.request)) one.request = entry.request;
  if (!Array.isArray(entry.timestamps)) return;
  for (const stamp of entry.timestamps) {
    if (isObject(stamp) && typeof stamp.name === "string" && typeof stamp.ns === "number") {
      one.times.set(stamp.name, stamp.ns / NS_PER_MS);
    }
  }
}

function toRequest({ times, header, batch, request }: Collected): TraceRequest | undefined {
  const queueStartMs = times.get("QUEUE_START") ?? times.get("REQUEST_START");
  const endMs = times.get("REQUEST_END");
  if (header === undefined || queueStartMs === undefined || endMs === undefined) return undefined;
  const transport = toTransport(times, "HTTP", "HTTP_RECV") ?? toTransport(times, "gRPC", "GRPC_WAITREAD");
  return {
    id: header.id as number,
    parentId: numberOf(header.parent_id),
    requestId: textOf(header.request_id),
    transport,
    modelName: header.model_name as string,
    modelVersion: Number(header.model_version ?? 0),
    queueStartMs,
    endMs,
    batch: toBatch(times, batch),
    ...contentOf(request ?? {}),
  };
}

function toTransport(
  times: ReadonlyMap<string, number>,
  protocol: TraceTransport["protocol"],
  receive: string,
): TraceTransport | undefined {
  const [start, end] = [times.get(`${receive}_START`), times.get(`${receive}_END`)];
  if (start === undefined || end === undefined) return undefined;
  const name = protocol.toUpperCase();
  return {
    protocol,
    receiveStartMs: start,
    receiveEndMs: end,
    sendStartMs: times.get(`${name}_SEND_START`),
    sendEndMs: times.get(`${name}_SEND_END`),
  };
}

function toBatch(times: ReadonlyMap<string, number>, batch: Entry | undefined): TraceBatch | undefined {
  const [startMs, endMs] = [times.get("COMPUTE_START"), times.get("COMPUTE_END")];
  if (startMs === undefined || endMs === undefined) return undefined;
  return {
    startMs,
    endMs,
    inputEndMs: times.get("COMPUTE_INPUT_END"),
    outputStartMs: times.get("COMPUTE_OUTPUT_START"),
    rows: numberOf(batch?.size),
    requests: numberOf(batch?.requests),
    instance: textOf(batch?.instance),
    cut: textOf(batch?.cut),
  };
}

function contentOf({ rows, limit_ms, caller, sequence, ...queue }: Entry): Partial<TraceRequest> {
  const id = isObject(sequence) ? textOf(sequence.id) : undefined;
  const { start, end } = (id === undefined ? {} : sequence) as Entry;
  return {
    rows: numberOf(rows),
    ...readTracedQueueOptions(queue),
    limitMs: numberOf(limit_ms),
    caller: textOf(caller),
    sequence: id === undefined ? undefined : { id: idOf(id), start: start === true, end: end === true },
  };
}

const numberOf = (value: unknown) => (typeof value === "number" ? value : undefined);
const textOf = (value: unknown) => (typeof value === "string" ? value : undefined);
const idOf = (text: string) => (/^\d+$/.test(text) ? BigInt(text) : text);

function isObject(value: unknown): value is Entry {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function invalid(path: string, why: string): TritonError {
  return new TritonError("INVALID_ARG", `cannot read the trace '${path}': ${why}`);
}

/** One request of a trace file, in milliseconds of the recording's clock. */
export interface TraceRequest extends QueueOptions {
  /** Number of the request in its file. */
  readonly id: number;
  /** The request that caused this one: that of an ensemble, or of a model that calls others. */
  readonly parentId?: number;
  /** The id that the client gave. */
  readonly requestId?: string;
  /** When the frontend began and ended to receive the request, and to send the response. */
  readonly transport?: TraceTransport;
  readonly modelName: string;
  readonly modelVersion: number;
  /** When the model accepted the request. */
  readonly queueStartMs: number;
  /** When the response was ready. */
  readonly endMs: number;
  /** Absent for a request that ran in no batch: it was refused, cancelled, or answered by the response cache. */
  readonly batch?: TraceBatch;
  /** Rows along the batch axis. Absent in files of servers that do not record it. */
  readonly rows?: number;
  /** Milliseconds that the sender waited for the answer at most, for a model with deadlines. */
  readonly limitMs?: number;
  /** Name of the caller, for a model that callers share. */
  readonly caller?: string;
  readonly sequence?: { readonly id: bigint | string; readonly start: boolean; readonly end: boolean };
}

/** Times of a request's frontend. A request that came in process has none. */
export interface TraceTransport {
  readonly protocol: "HTTP" | "gRPC";
  readonly receiveStartMs: number;
  readonly receiveEndMs: number;
  readonly sendStartMs?: number;
  readonly sendEndMs?: number;
}

/** The batch of a request, as its trace tells. */
export interface TraceBatch {
  readonly startMs: number;
  readonly endMs: number;
  /** When the inputs were merged, and when the model had its outputs. */
  readonly inputEndMs?: number;
  readonly outputStartMs?: number;
  /** Rows, requests, instance and reason for the size. tritonserver does not record these. */
  readonly rows?: number;
  readonly requests?: number;
  readonly instance?: string;
  readonly cut?: string;
}

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
      ...queueOptions(one),
      limitMs: one.limitMs,
      caller: one.caller,
      sequence: one.sequence,
    }),
  );
  const { wakeMs, gapMs } = pausesOf(batches);
  return {
    modelName: name,
    requests,
    latenciesMs: Float64Array.from(ran, (one) => one.endMs - one.queueStartMs),
    batches,
    instances: new Set(batches.map(({ instance }) => instance)).size,
    durationMs: ran.reduce((latest, { endMs }) => Math.max(latest, endMs), origin) - origin,
    leftOut: all.length - ran.length,
    respondMs: median(ran.map((one) => Math.max(0, one.endMs - one.batch!.endMs))),
    wakeMs,
    gapMs,
  };
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
