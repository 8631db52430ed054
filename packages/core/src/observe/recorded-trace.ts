import { floatReader, Tensor, type TritonError } from "@tritonjs/protocol";
import { lengthLimitOf, scalarOptions, tracedQueueOptions } from "../request-info.js";
import type { RequestTrace, TracedBatch, TracedRequest } from "./request-trace.js";
import type { CutReason, ExecutionTimes, LateCause } from "./statistics.js";
import type { TraceLevel } from "./trace-settings.js";

const NOTHING: TraceEntry[] = [];

/** The trace of one request for a file, where times are nanoseconds. */
export class RecordedTrace implements RequestTrace {
  readonly id: number;
  readonly traceId = undefined;
  readonly traceparent = undefined;
  readonly sampled = true;
  /** 0 for a request that no other request has caused. */
  readonly #parentId: number;
  readonly #list: TraceEntry[];
  #state: "new" | "begun" | "ended" = "new";

  constructor(
    private readonly trace: Trace,
    parentId = 0,
  ) {
    this.#parentId = parentId;
    this.id = trace.nextId();
    this.#list = trace.over ? NOTHING : trace.open();
  }

  child(): RecordedTrace {
    return new RecordedTrace(this.trace, this.id);
  }

  within<T>(fn: () => T): T {
    return fn();
  }

  mark(name: string, atMs: number): void {
    if (this.trace.timestamps) this.#add({ id: this.id, timestamps: [{ name, ns: nanoseconds(atMs) }] });
  }

  begin(modelName: string, modelVersion: number, request: TracedRequest, atMs: number): void {
    if (this.#state !== "new" || this.trace.over) return;
    this.#state = "begun";
    this.trace.hold();
    this.#add({
      id: this.id,
      model_name: modelName,
      model_version: modelVersion,
      ...(request.id === "" ? {} : { request_id: request.id }),
      ...(this.#parentId === 0 ? {} : { parent_id: this.#parentId }),
    });
    this.mark("REQUEST_START", atMs);
    this.mark("QUEUE_START", atMs);
    if (this.trace.timestamps) this.#add({ id: this.id, request: tracedContent(request, atMs) });
    this.#addTensors("TENSOR_QUEUE_INPUT", request.inputs);
  }

  batch({ batchSize, requestCount, cut, instance }: TracedBatch): void {
    if (!this.trace.timestamps) return;
    const reason = cut === undefined ? {} : { cut };
    this.#add({ id: this.id, batch: { size: batchSize, requests: requestCount, ...reason, instance } });
  }

  late(cause: LateCause): void {
    if (this.trace.timestamps) this.#add({ id: this.id, late: cause });
  }

  compute({ start, inputEnd, inferEnd, end }: ExecutionTimes): void {
    this.mark("COMPUTE_START", start);
    this.mark("COMPUTE_INPUT_END", inputEnd);
    this.mark("COMPUTE_OUTPUT_START", inferEnd);
    this.mark("COMPUTE_END", end);
  }

  outputs(tensors: ReadonlyMap<string, Tensor>): void {
    this.#addTensors("TENSOR_BACKEND_OUTPUT", tensors);
  }

  end(atMs: number, error?: TritonError): void {
    if (this.#state !== "begun") return;
    this.#state = "ended";
    this.mark("REQUEST_END", atMs);
    if (error?.code === "UNAVAILABLE" && this.trace.timestamps) {
      this.#add({ id: this.id, refused: error.reason ?? error.code });
    }
    this.trace.release();
  }

  release(): void {
    this.trace.release();
  }

  #addTensors(stage: TensorStage, tensors: ReadonlyMap<string, Tensor>): void {
    if (!this.trace.tensors || this.trace.over) return;
    for (const [name, tensor] of tensors) this.#add(new TensorActivity(this.id, stage, name, tensor));
  }

  #add(entry: TraceEntry): void {
    this.trace.add(this.#list, this.id, entry);
  }
}

/** Longest name of a caller in a trace, in characters. */
const LONGEST_CALLER = 128;

/** Properties of a request that decide how it is batched: those that `tritonjs replay` needs. */
function tracedContent(request: TracedRequest, atMs: number): TracedContent {
  const { deadline = Number.POSITIVE_INFINITY, clientLimitMs = 0, parameters = {} } = request;
  const caller = request.caller || parameters.caller;
  const maxTokens = lengthLimitOf({ inputs: request.inputs, parameters });
  const limitMs = Math.min(deadline - atMs, clientLimitMs > 0 ? clientLimitMs : Number.POSITIVE_INFINITY);
  const { sequence, ...options } = scalarOptions(request);
  return {
    rows: request.rows ?? 1,
    ...tracedQueueOptions(options),
    ...(limitMs < Number.POSITIVE_INFINITY && { limit_ms: Math.round(limitMs * 1000) / 1000 }),
    ...(deadline < Number.POSITIVE_INFINITY && limitMs === deadline - atMs && { ends: true as const }),
    ...(caller && { caller: String(caller).slice(0, LONGEST_CALLER) }),
    ...(maxTokens !== undefined && { max_tokens: maxTokens }),
    ...(sequence && { sequence: { ...sequence, id: String(sequence.id) } }),
  };
}

function nanoseconds(milliseconds: number): number {
  return Math.round(milliseconds * 1e6);
}

/** Properties of a request that decide how it is batched. Defaults are left out. */
interface TracedContent extends ReturnType<typeof tracedQueueOptions> {
  /** Rows along the batch axis; 1 for a model without one. */
  readonly rows: number;
  /** Milliseconds that the sender waits for the answer. */
  readonly limit_ms?: number;
  /** The request ends when this time is over, whether its model has deadlines or not. */
  readonly ends?: true;
  readonly caller?: string;
  /** Largest number of tokens of the text that the request asks for. */
  readonly max_tokens?: number;
  readonly sequence?: { readonly id: string; readonly start?: boolean; readonly end?: boolean };
}

type TracePart = { readonly id: number } & (
  | {
      readonly model_name: string;
      readonly model_version: number;
      readonly request_id?: string;
      readonly parent_id?: number;
    }
  | { readonly timestamps: readonly [{ readonly name: string; readonly ns: number }] }
  | {
      readonly batch: {
        readonly size: number;
        readonly requests: number;
        readonly cut?: CutReason;
        readonly instance: string;
      };
    }
  | { readonly request: TracedContent }
  | { readonly late: LateCause }
  /** Why the request was refused or ended with UNAVAILABLE. */
  | { readonly refused: string }
  | { readonly truncated: true }
);

/** A part of a trace, or a tensor, which becomes a part when it is written. */
type TraceEntry = TracePart | TensorActivity;

/** Approximate size of a part, in bytes. */
const PART_BYTES = 128;

/** Receives finished traces. */
export interface TraceCollector {
  readonly levels: readonly TraceLevel[];
  /** Returns the number for the trace of another request. */
  nextId(): number;
  collect(trace: Trace): void;
}

/** Largest size of one trace, in bytes, because a stream may have any number of responses. */
const MAX_BYTES = 64 * 1024 * 1024;

/** The traces of a request and of those that it causes. It is over when all have ended and the sampler released it. */
export class Trace {
  readonly timestamps: boolean;
  readonly tensors: boolean;
  byteSize = 0;
  #isFull = false;
  /** One list for each request, in the order in which they began. */
  readonly #lists: TraceEntry[][] = [];
  #holders = 1;

  constructor(private readonly collector: TraceCollector) {
    this.timestamps = collector.levels.includes("TIMESTAMPS");
    this.tensors = collector.levels.includes("TENSORS");
  }

  get over(): boolean {
    return this.#holders === 0;
  }

  get requests(): readonly (readonly TraceEntry[])[] {
    return this.#lists;
  }

  get entries(): readonly TraceEntry[] {
    return this.#lists.flat();
  }

  nextId(): number {
    return this.collector.nextId();
  }

  /** Adds another request. Its entries go into the returned list. */
  open(): TraceEntry[] {
    const list: TraceEntry[] = [];
    this.#lists.push(list);
    return list;
  }

  /** Adds an entry, unless the trace is over or full. When the trace becomes full, a last entry says so. */
  add(list: TraceEntry[], id: number, entry: TraceEntry): void {
    if (this.over || this.#isFull) return;
    this.byteSize += entry instanceof TensorActivity ? entry.byteSize : PART_BYTES;
    this.#isFull = this.byteSize > MAX_BYTES;
    list.push(this.#isFull ? { id, truncated: true } : entry);
  }

  hold(): void {
    this.#holders++;
  }

  release(): void {
    this.#holders--;
    if (this.#holders === 0) this.collector.collect(this);
  }
}

type TensorStage = "TENSOR_QUEUE_INPUT" | "TENSOR_BACKEND_OUTPUT";

const SLICE = 4096;

/** A tensor of a trace: a copy, which is converted to text when it is written. */
export class TensorActivity {
  readonly #tensor: Tensor;
  readonly #opening: string;

  constructor(id: number, stage: TensorStage, name: string, tensor: Tensor) {
    this.#tensor = Tensor.fromBytes(tensor.datatype, tensor.shape, new Uint8Array(tensor.bytes));
    this.#opening = `{"id":${id},"activity":"${stage}","tensor":{"name":${JSON.stringify(name)},"data":"`;
  }

  get byteSize(): number {
    return this.#tensor.byteLength;
  }

  /** The JSON, piece by piece, so that a large tensor does not block the event loop. */
  *pieces(): Generator<string> {
    const { datatype, shape } = this.#tensor;
    const elements = elementsOf(this.#tensor);
    yield this.#opening;
    const text = textOf(datatype);
    for (let from = 0; from < elements.length; from += SLICE) {
      const to = Math.min(from + SLICE, elements.length);
      let piece = from === 0 ? "" : ",";
      for (let i = from; i < to; i++) piece += `${i === from ? "" : ","}${text(elements[i]!)}`;
      yield datatype === "BYTES" ? inString(piece) : piece;
    }
    yield `","shape":"${shape.join(",")}","dtype":"${datatype}"}}`;
  }
}

/** No elements if the bytes are not a valid tensor, so that the trace of a faulty model can still be written. */
function elementsOf(tensor: Tensor): Tensor["elements"] {
  try {
    return tensor.elements;
  } catch {
    return [];
  }
}

type Element = Tensor["elements"][number];

/** Makes the text of an element. Strings are quoted as in CSV, because Triton's tools read them that way. */
function textOf(datatype: Tensor["datatype"]): (element: Element) => string {
  switch (datatype) {
    case "BYTES":
      return (element) =>
        `"${Buffer.from(element as Uint8Array)
          .toString()
          .replaceAll('"', '""')}"`;
    case "FP64":
      return (element) => String(element);
    default: {
      const toNumber = floatReader(datatype);
      return (element) => (toNumber === undefined ? String(element) : short(toNumber(element as number)));
    }
  }
}

/** Formats a 32-bit float with as few digits as identify it. */
function short(value: number): string {
  for (const digits of [7, 8]) {
    const rounded = Number(value.toPrecision(digits));
    if (Object.is(Math.fround(rounded), value)) return String(rounded);
  }
  return String(Number(value.toPrecision(9)));
}

function inString(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
