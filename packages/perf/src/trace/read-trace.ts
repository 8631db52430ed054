import { readFile } from "node:fs/promises";
import { type QueueOptions, readTracedQueueOptions } from "@tritonjs/core/internal";
import { TritonError } from "@tritonjs/protocol";

const NS_PER_MS = 1e6;

/** Entry of a trace file, whose fields are not known to be right. */
type Entry = Readonly<Record<string, unknown>>;

interface Collected {
  readonly times: Map<string, number>;
  header: Entry | undefined;
  batch: Entry | undefined;
  request: Entry | undefined;
  late: string | undefined;
  refused: string | undefined;
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
    one = {
      times: new Map(),
      header: undefined,
      batch: undefined,
      request: undefined,
      late: undefined,
      refused: undefined,
    };
    byId.set(entry.id, one);
  }
  if (typeof entry.model_name === "string") one.header = entry;
  if (isObject(entry.batch)) one.batch = entry.batch;
  if (isObject(entry.request)) one.request = entry.request;
  one.late ??= textOf(entry.late);
  one.refused ??= textOf(entry.refused);
  if (!Array.isArray(entry.timestamps)) return;
  for (const stamp of entry.timestamps) {
    if (isObject(stamp) && typeof stamp.name === "string" && typeof stamp.ns === "number") {
      one.times.set(stamp.name, stamp.ns / NS_PER_MS);
    }
  }
}

function toRequest({ times, header, batch, request, late, refused }: Collected): TraceRequest | undefined {
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
    wasTaken: batch !== undefined,
    late,
    refused,
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

function contentOf({ rows, limit_ms, ends, caller, sequence, ...queue }: Entry): Partial<TraceRequest> {
  const id = isObject(sequence) ? textOf(sequence.id) : undefined;
  const { start, end } = (id === undefined ? {} : sequence) as Entry;
  return {
    rows: numberOf(rows),
    ...readTracedQueueOptions(queue),
    limitMs: numberOf(limit_ms),
    endsAtLimit: ends === true,
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
  /** True if an instance took the request in a batch, also if its time was over before the batch was. */
  readonly wasTaken: boolean;
  /** Rows along the batch axis. Absent in files of servers that do not record it. */
  readonly rows?: number;
  /** Milliseconds that the sender waited for the answer at most, for a model with deadlines. */
  readonly limitMs?: number;
  /** True if the request ended when that time was over, with or without deadlines. */
  readonly endsAtLimit?: boolean;
  /** Name of the caller, as its header or the parameter `caller` says. */
  readonly caller?: string;
  /** Why a request with a deadline was late, or refused because it would have been. */
  readonly late?: string;
  /** Reason of an answer UNAVAILABLE: the request was refused, or its time was over. */
  readonly refused?: string;
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
