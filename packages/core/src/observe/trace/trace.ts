import type { CutReason } from "../cut-log.js";
import { TensorActivity } from "./tensor-activity.js";
import type { TraceContext } from "./trace-context.js";
import type { TraceLevel } from "./trace-settings.js";

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
  | { readonly truncated: true }
);

/** A part of a trace, or a tensor, which becomes one when it is written. */
export type TraceEntry = TracePart | TensorActivity;

/** About what a part takes. */
const PART_BYTES = 128;

/** Takes traces that are over. */
export interface TraceCollector {
  readonly levels: readonly TraceLevel[];
  readonly takesTensors: boolean;
  /** A number for the trace of another request. */
  nextId(): number;
  /** Wall time less the time on the clock, in milliseconds. */
  wallOffsetMs(): number;
  collect(trace: Trace): void;
}

/** What one trace may hold: a stream may have any number of responses. */
const MAX_BYTES = 64 * 1024 * 1024;

/**
 * The traces of a request and of those that it led to: the steps of an ensemble, and calls from models. It is over when
 * all of them are, and whoever asked for it has let go of it.
 */
export class Trace {
  readonly timestamps: boolean;
  readonly tensors: boolean;
  /** About what it holds. */
  byteSize = 0;
  #isFull = false;
  /** One list for each request, in the order of their beginnings. */
  readonly #lists: TraceEntry[][] = [];
  #holders = 1;
  readonly #collector: TraceCollector;

  /** Wall time less the time on the clock, in milliseconds, when the trace began. */
  readonly wallOffsetMs: number;

  /** @param context the trace of other services that this one is part of */
  constructor(
    collector: TraceCollector,
    readonly context?: TraceContext,
  ) {
    this.#collector = collector;
    this.wallOffsetMs = collector.wallOffsetMs();
    this.timestamps = collector.levels.includes("TIMESTAMPS");
    this.tensors = collector.takesTensors && collector.levels.includes("TENSORS");
  }

  get over(): boolean {
    return this.#holders === 0;
  }

  /** The entries of each request. */
  get requests(): readonly (readonly TraceEntry[])[] {
    return this.#lists;
  }

  /** All entries, those of one request together. */
  get entries(): readonly TraceEntry[] {
    return this.#lists.flat();
  }

  nextId(): number {
    return this.#collector.nextId();
  }

  /** Another request. What is added for it goes into the list. */
  open(): TraceEntry[] {
    const list: TraceEntry[] = [];
    this.#lists.push(list);
    return list;
  }

  /** Adds an entry, unless the trace is over or has grown too large; then it says so once. */
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
