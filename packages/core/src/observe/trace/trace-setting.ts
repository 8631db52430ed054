import { Trace, type TraceCollector } from "./trace.js";
import type { TraceFiles, TraceOutput } from "./trace-files.js";
import {
  type ChangeableTraceSetting,
  type TraceLevel,
  type TraceSettings,
  whyInvalid,
} from "./trace-settings.js";

/** Number of bytes of finished traces that are collected before they are written. */
const MAX_WAITING_BYTES = 1024 * 1024;
const MAX_WAITING_TRACES = 1024;

/** Parts that all trace settings of a server share. */
export interface TraceSettingOwner {
  readonly files: TraceFiles;
  nextId(): number;
  /** Called when a replaced setting has written its last trace. */
  forget(setting: TraceSetting): void;
}

/**
 * One trace setting: decides which requests are traced, and passes their traces to the file. It is replaced instead of
 * changed, so that a trace ends with the setting with which it began.
 */
export class TraceSetting implements TraceCollector {
  readonly levels: readonly TraceLevel[];
  /** Why nothing is recorded; empty if recording works. */
  readonly invalidReason: string;
  /** Number of traces that remain to be recorded; -1 for no limit. */
  #count: number;
  #seen = 0;
  /** Traces that used up the count. The next counter has all finished traces. */
  #counted = 0;
  #collected = 0;
  /** Traces that are not finished. */
  #open = 0;
  #replaced = false;
  #waiting: Trace[] = [];
  #waitingBytes = 0;
  /** Traces since the last file was complete. */
  #inFile = 0;
  /** The file that is being written. */
  #output: TraceOutput | undefined;

  /**
   * @param specified names of the values that are set here instead of inherited; a model inherits from the server, and
   * the server from its start options
   */
  constructor(
    private readonly values: TraceSettings,
    readonly specified: ReadonlySet<ChangeableTraceSetting>,
    private readonly owner: TraceSettingOwner,
  ) {
    this.levels = values.levels;
    this.#count = values.count;
    this.invalidReason = whyInvalid(values);
  }

  /** The settings, with the remaining count. */
  get settings(): TraceSettings {
    return { ...this.values, count: this.#count };
  }

  /** True while requests may be traced. */
  get valid(): boolean {
    return this.invalidReason === "" && this.#count !== 0;
  }

  nextId(): number {
    return this.owner.nextId();
  }

  /** Starts a trace for one of `rate` requests. */
  sample(): Trace | undefined {
    if (!this.selects()) return undefined;
    this.#open++;
    return new Trace(this);
  }

  /** True for one of `rate` requests, while the count lasts. */
  selects(): boolean {
    if (!this.valid) return false;
    this.#seen++;
    if (this.#seen % this.values.rate !== 0) return false;
    if (this.#count > 0) {
      this.#count--;
      this.#counted++;
    }
    return true;
  }

  collect(trace: Trace): void {
    this.#open--;
    this.#keep(trace);
    if (this.#replaced && this.#open === 0) this.save();
  }

  #keep(trace: Trace): void {
    this.#collected++;
    this.#inFile++;
    this.#waiting.push(trace);
    this.#waitingBytes += trace.byteSize;
    const { logFrequency } = this.values;
    const isLast = this.#count === 0 && this.#collected === this.#counted;
    if (isLast || (logFrequency !== 0 && this.#inFile >= logFrequency)) this.#save(true);
    else if (this.#waitingBytes > MAX_WAITING_BYTES || this.#waiting.length >= MAX_WAITING_TRACES)
      this.#write(this.#isNumbered);
  }

  /** Marks the setting as replaced. Its traces in progress are still recorded. */
  replace(): void {
    this.#replaced = true;
    if (this.#open === 0) this.save();
  }

  /** Writes all finished traces. */
  save(): void {
    if (this.#waiting.length > 0 || this.#output !== undefined) this.#save(this.values.logFrequency !== 0);
    if (this.#replaced) this.owner.forget(this);
  }

  /** Whether a file that must be started early will be a numbered one. */
  get #isNumbered(): boolean {
    return this.values.logFrequency !== 0 || this.#count !== -1;
  }

  #save(numbered: boolean): void {
    this.#inFile = 0;
    this.#write(numbered);
    // The file without a number stays open until the server ends.
    if (this.#output !== this.owner.files.plain) this.#output?.end();
    this.#output = undefined;
  }

  #write(numbered: boolean): void {
    this.#output ??= numbered ? this.owner.files.numbered() : this.owner.files.plain;
    this.#output.write(this.#waiting);
    this.#waiting = [];
    this.#waitingBytes = 0;
  }
}
