import type { CutReason } from "../cut-log.js";
import { TensorActivity } from "./tensor-activity.js";
import type { TraceLevel } from "./trace-settings.js";

/** Properties of a request that decide how it is batched. Defaults are left out. */
export interface TracedContent {
  /** Rows along the batch axis; 1 for a model without one. */
  readonly rows: number;
  readonly priority?: number;
  readonly queue_timeout_us?: number;
  readonly sequence?: { readonly id: string; readonly start?: true; readonly end?: true };
}

/** A part of a trace, as it is written. */
export type TracePart = { readonly id: number } & (
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
  | { readonly truncated: true }
);

/** A part of a trace, or a tensor, which becomes a part when it is written. */
export type TraceEntry = TracePart | TensorActivity;

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

/**
 * The traces of a request and of the requests that it causes: the steps of an ensemble, and calls from models. It is
 * over when all of them have ended and the sampler has released it.
 */
export class Trace {
  readonly timestamps: boolean;
  readonly tensors: boolean;
  /** Approximate size, in bytes. */
  byteSize = 0;
  #isFull = false;
  /** One list for each request, in the order in which they began. */
  readonly #lists: TraceEntry[][] = [];
  #holders = 1;
  readonly #collector: TraceCollector;

  constructor(collector: TraceCollector) {
    this.#collector = collector;
    this.timestamps = collector.levels.includes("TIMESTAMPS");
    this.tensors = collector.levels.includes("TENSORS");
  }

  get over(): boolean {
    return this.#holders === 0;
  }

  /** The entries of each request. */
  get requests(): readonly (readonly TraceEntry[])[] {
    return this.#lists;
  }

  /** All entries, grouped by request. */
  get entries(): readonly TraceEntry[] {
    return this.#lists.flat();
  }

  nextId(): number {
    return this.#collector.nextId();
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
    if (this.#holders === 0) this.#collector.collect(this);
  }
}
