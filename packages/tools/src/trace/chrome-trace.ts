import type { TraceRequest } from "../replay/trace-request.js";
import { Lanes } from "./lanes.js";
import { batchKey } from "./trace-summary.js";

/** An event of Chrome's Trace Event Format. Times are microseconds. */
export interface ChromeEvent {
  readonly name: string;
  /** `X` a span, `M` a name, `s` and `f` the ends of an arrow, `b` and `e` the ends of a span of its own row. */
  readonly ph: "X" | "M" | "s" | "f" | "b" | "e";
  /** The model. */
  readonly pid: number;
  /** An instance of the model, or a row of its queue. */
  readonly tid: number;
  readonly ts?: number;
  readonly dur?: number;
  readonly cat?: string;
  readonly id?: string;
  /** `e`: the arrow ends at the span that encloses it. */
  readonly bp?: "e";
  readonly args?: Readonly<Record<string, string | number>>;
}

/** A trace as Perfetto and chrome://tracing open it. */
export interface ChromeTrace {
  readonly traceEvents: readonly ChromeEvent[];
  readonly displayTimeUnit: "ms";
}

/** Numbers of the first row of a queue, above those of all instances. */
const FIRST_QUEUE_ROW = 10_000;

/** Shortest span, in microseconds: viewers bind arrows to spans, and drop those without a length. */
const SHORTEST = 0.001;

/**
 * Converts a trace to Chrome's Trace Event Format, which https://ui.perfetto.dev opens. A model is a process, and each
 * instance is a thread of it. Requests wait in the rows of the queue. An arrow goes from each request to its batch.
 */
export function chromeTrace(trace: readonly TraceRequest[]): ChromeTrace {
  const origin = trace.reduce(
    (least, { queueStartMs, transport }) => Math.min(least, transport?.receiveStartMs ?? queueStartMs),
    Number.POSITIVE_INFINITY,
  );
  const models = new Map<string, TraceRequest[]>();
  for (const request of trace) {
    const name = `${request.modelName} ${request.modelVersion}`;
    const known = models.get(name);
    if (known === undefined) models.set(name, [request]);
    else known.push(request);
  }
  const traceEvents = [...models.entries()].flatMap(([name, requests], index) =>
    new ModelEvents(index + 1, name, origin).write(requests),
  );
  return { traceEvents, displayTimeUnit: "ms" };
}

/** The events of one model. */
class ModelEvents {
  readonly #pid: number;
  readonly #originMs: number;
  readonly #events: ChromeEvent[] = [];
  readonly #named = new Set<number>();
  readonly #instances = new Map<string, number>();
  /** Instances of servers that do not record their names. */
  readonly #unnamed = new Lanes();
  readonly #queue = new Lanes();

  constructor(pid: number, name: string, originMs: number) {
    this.#pid = pid;
    this.#originMs = originMs;
    this.#events.push({ name: "process_name", ph: "M", pid, tid: 0, args: { name } });
  }

  write(requests: readonly TraceRequest[]): ChromeEvent[] {
    const rows = this.#batches(requests);
    const byArrival = [...requests].sort((a, b) => a.queueStartMs - b.queueStartMs);
    for (const [index, request] of byArrival.entries()) this.#request(request, index, rows);
    return this.#events;
  }

  /** Writes each batch once, and returns the rows of all. */
  #batches(requests: readonly TraceRequest[]): Map<string, number> {
    const rows = new Map<string, number>();
    const ran = requests.flatMap((request) => (request.batch === undefined ? [] : [request]));
    ran.sort((a, b) => a.batch!.startMs - b.batch!.startMs);
    for (const request of ran) {
      const key = batchKey(request)!;
      if (rows.has(key)) continue;
      const tid = this.#instanceRow(request);
      rows.set(key, tid);
      const { startMs, endMs, inputEndMs, outputStartMs, rows: size, requests: count, cut } = request.batch!;
      this.#span(tid, size === undefined ? "batch" : `batch of ${size}`, startMs, endMs, {
        ...(size === undefined ? {} : { rows: size }),
        ...(count === undefined ? {} : { requests: count }),
        ...(cut === undefined ? {} : { cut }),
      });
      if (inputEndMs === undefined || outputStartMs === undefined) continue;
      this.#span(tid, "inputs", startMs, inputEndMs);
      this.#span(tid, "model", inputEndMs, outputStartMs);
      this.#span(tid, "outputs", outputStartMs, endMs);
    }
    return rows;
  }

  #instanceRow({ batch }: TraceRequest): number {
    const { instance, startMs, endMs } = batch!;
    const name = instance ?? `instance ${this.#unnamed.place(startMs, endMs) + 1}`;
    const tid = this.#instances.get(name) ?? this.#instances.size + 1;
    this.#instances.set(name, tid);
    this.#name(tid, name);
    return tid;
  }

  #request(request: TraceRequest, index: number, rows: ReadonlyMap<string, number>): void {
    const { queueStartMs, endMs, batch, transport, requestId, id } = request;
    const name = requestId ?? `request ${id}`;
    const waitedUntil = Math.max(queueStartMs, batch?.startMs ?? endMs);
    const row = this.#queue.place(queueStartMs, waitedUntil);
    const tid = FIRST_QUEUE_ROW + row;
    this.#name(tid, `queue ${row + 1}`);
    this.#span(tid, name, queueStartMs, waitedUntil, argumentsOf(request));
    const flow = { name: "runs in", cat: "queue", id: `${this.#pid}.${index}`, pid: this.#pid };
    if (batch !== undefined) {
      const to = rows.get(batchKey(request)!)!;
      this.#events.push(
        { ...flow, ph: "s", tid, ts: this.#at(queueStartMs) },
        { ...flow, ph: "f", bp: "e", tid: to, ts: this.#at(batch.startMs) },
      );
    }
    const whole = { cat: "request", id: flow.id, pid: this.#pid, tid: 0 };
    const nested = (part: string, start: number, end: number) =>
      this.#events.push(
        { ...whole, name: part, ph: "b", ts: this.#at(start) },
        { ...whole, name: part, ph: "e", ts: this.#at(Math.max(start, end)) },
      );
    this.#events.push({ ...whole, name, ph: "b", ts: this.#at(transport?.receiveStartMs ?? queueStartMs) });
    if (transport !== undefined) {
      const { protocol, receiveStartMs, receiveEndMs, sendStartMs, sendEndMs } = transport;
      nested(`${protocol} receive`, receiveStartMs, receiveEndMs);
      if (sendStartMs !== undefined && sendEndMs !== undefined)
        nested(`${protocol} send`, sendStartMs, sendEndMs);
    }
    const last = Math.max(endMs, transport?.sendEndMs ?? endMs);
    this.#events.push({ ...whole, name, ph: "e", ts: this.#at(last) });
  }

  #span(tid: number, name: string, startMs: number, endMs: number, args?: ChromeEvent["args"]): void {
    const ts = this.#at(startMs);
    const dur = Math.max(SHORTEST, rounded((endMs - startMs) * 1000));
    const further = args === undefined || Object.keys(args).length === 0 ? {} : { args };
    this.#events.push({ name, ph: "X", pid: this.#pid, tid, ts, dur, ...further });
  }

  #name(tid: number, name: string): void {
    if (this.#named.has(tid)) return;
    this.#named.add(tid);
    this.#events.push({ name: "thread_name", ph: "M", pid: this.#pid, tid, args: { name } });
  }

  #at(ms: number): number {
    return rounded((ms - this.#originMs) * 1000);
  }
}

function argumentsOf({
  id,
  parentId,
  rows,
  priority,
  sequence,
}: TraceRequest): Record<string, string | number> {
  return {
    id,
    ...(parentId === undefined ? {} : { parent: parentId }),
    ...(rows === undefined ? {} : { rows }),
    ...(priority === undefined ? {} : { priority }),
    ...(sequence === undefined ? {} : { sequence: String(sequence.id) }),
  };
}

/** Microseconds, to the nanosecond. */
function rounded(microseconds: number): number {
  return Math.round(microseconds * 1000) / 1000;
}
