import { appendFile, writeFile } from "node:fs/promises";
import { errorFor, statusText } from "@tritonjs/protocol";
import type { Clock } from "../system/clock.js";
import { PRIVATE_FILE } from "../system/files.js";
import type { Log } from "./log.js";
import { RecordedTrace, TensorActivity, Trace, type TraceCollector } from "./recorded-trace.js";
import { joinTraces, type RequestArrival, type RequestTrace, type RequestTracer } from "./request-trace.js";
import {
  CHANGEABLE_TRACE_SETTINGS,
  type ChangeableTraceSetting,
  resolveTraceOptions,
  type TraceChanges,
  type TraceLevel,
  type TraceOptions,
  type TraceSettings,
  whyInvalid,
} from "./trace-settings.js";

const NOTHING: ReadonlySet<ChangeableTraceSetting> = new Set();

/**
 * The traces of a server: decides which requests are traced, with which settings, and where the traces go. A model has
 * the settings of the server, except for its own ones.
 *
 * @example
 * ```ts
 * serviceOf(triton).tracing?.update("resnet", { levels: ["TIMESTAMPS"], rate: 100 });
 * ```
 */
export class Tracing {
  readonly #files: TraceFiles;
  /** Make the spans. Empty unless the mode is "opentelemetry". */
  readonly #spans: readonly RequestTracer[];
  /** Tracers that get all requests, whatever the settings say. */
  readonly #always: readonly RequestTracer[];
  readonly #initial: TraceSettings;
  /** Called when the settings have changed. */
  onUpdate: (() => void) | undefined;
  #server: TraceSetting;
  readonly #models = new Map<string, TraceSetting>();
  /** Replaced settings that still have traces in progress. */
  readonly #replaced = new Set<TraceSetting>();

  /**
   * @param tracers those of extensions
   * @throws TritonError INVALID_ARG that lists every problem of the options, or names the missing tracer.
   */
  constructor(
    options: TraceOptions,
    private readonly clock: Clock,
    log: Log,
    tracers: readonly RequestTracer[] = [],
  ) {
    this.#always = tracers.filter(({ always }) => always);
    const spans = tracers.filter(({ always }) => !always);
    this.#initial = resolveTraceOptions(options, spans.length > 0);
    this.#files = new TraceFiles(this.#initial.file, log);
    this.#spans = this.#initial.mode === "opentelemetry" ? spans : [];
    this.#server = new TraceSetting(this.#initial, NOTHING, this.#files, this.#replaced);
    const { invalidReason, levels } = this.#server;
    const hasSpans = this.#spans.length > 0;
    if (levels.includes("TENSORS") && hasSpans) {
      log.warning("trace level TENSORS has no effect in trace mode opentelemetry: use mode triton");
    }
    // With a rate of 0, traces that clients began are still continued.
    if (levels.length > 0 && invalidReason !== "" && !hasSpans)
      log.warning(`tracing is off: ${invalidReason}`);
  }

  /** The settings for requests to a model, or those of the server for an empty name. */
  settings(modelName = ""): TraceSettings {
    return this.#settingOf(modelName).settings;
  }

  /**
   * Changes settings of a model, or of the server for an empty name. Models follow the server in settings that they do
   * not have themselves. Finished traces are written.
   *
   * @throws TritonError INVALID_ARG for settings with which nothing could be recorded, unless tracing is off.
   */
  update(modelName: string, changes: TraceChanges): void {
    this.#update(modelName, changes);
    if (modelName === "") for (const name of [...this.#models.keys()]) this.#update(name, {});
    this.onUpdate?.();
  }

  /** True if requests of some model may be traced. */
  get active(): boolean {
    const settings = [this.#server, ...this.#models.values()];
    return this.#always.length > 0 || settings.some(({ levels }) => levels.length > 0);
  }

  /**
   * Samples a request that is about to be sent to a model. Returns its trace, or undefined if it is not traced. The
   * caller must release the trace.
   *
   * @param arrival how the request came; undefined for a request of this process
   */
  sample(modelName: string, arrival?: RequestArrival): RequestTrace | undefined {
    let trace = this.#sampleBySettings(modelName, arrival);
    for (const tracer of this.#always) {
      if (!tracer.skips?.(modelName))
        trace = joinTraces(trace, this.#start(tracer, modelName, true, arrival));
    }
    return trace;
  }

  #sampleBySettings(modelName: string, arrival: RequestArrival | undefined): RequestTrace | undefined {
    const setting = this.#settingOf(modelName);
    if (this.#spans.length === 0) {
      const trace = setting.sample();
      return trace && new RecordedTrace(trace);
    }
    let trace: RequestTrace | undefined;
    if (setting.levels.length === 0) return trace;
    const spans = this.#spans.filter((tracer) => !tracer.skips?.(modelName));
    if (spans.length === 0) return trace;
    const selected = setting.selects();
    for (const tracer of spans) trace = joinTraces(trace, this.#start(tracer, modelName, selected, arrival));
    return trace;
  }

  /** Apart from `sample`, which would otherwise allocate for the closure also where no trace starts. */
  #start(
    tracer: RequestTracer,
    modelName: string,
    selected: boolean,
    arrival: RequestArrival | undefined,
  ): RequestTrace | undefined {
    const now = () => this.now();
    const wallOffsetMs = this.clock.wallNow() - now();
    return tracer.start({ modelName, selected, arrival, now, wallOffsetMs });
  }

  /** Traces and spans that were lost since the start, because the disk or the collector was too slow for them. */
  get lost(): number {
    const tracers = [...this.#spans, ...this.#always];
    return tracers.reduce((sum, { lostSpans = 0 }) => sum + lostSpans, this.#files.lost);
  }

  /** Milliseconds on the clock that times traces. */
  now(): number {
    return this.clock.now();
  }

  /** Writes all finished traces. Resolves when they are written. */
  async close(): Promise<void> {
    for (const setting of [this.#server, ...this.#models.values(), ...this.#replaced]) setting.save();
    await this.#files.close();
  }

  #settingOf(modelName: string): TraceSetting {
    return this.#models.get(modelName) ?? this.#server;
  }

  #update(modelName: string, changes: TraceChanges): void {
    const isServer = modelName === "";
    const current = isServer ? this.#server : this.#models.get(modelName);
    const above = isServer ? this.#initial : this.#server.settings;
    const specified = new Set(
      CHANGEABLE_TRACE_SETTINGS.filter(
        (name) => changes[name] !== null && (changes[name] !== undefined || current?.specified.has(name)),
      ),
    );
    if (!isServer && specified.size === 0) {
      this.#models.delete(modelName);
      this.#retire(current);
      return;
    }
    const own = Object.fromEntries(
      [...specified].map((name) => [name, changes[name] ?? current?.settings[name]]),
    );
    const next = new TraceSetting({ ...above, ...own }, specified, this.#files, this.#replaced);
    if (!next.valid && next.levels.length > 0) {
      throw errorFor("INVALID_SETTING", `Attempting to set invalid trace setting :${next.invalidReason}`);
    }
    if (isServer) this.#server = next;
    else this.#models.set(modelName, next);
    this.#retire(current);
  }

  #retire(setting: TraceSetting | undefined): void {
    if (setting === undefined) return;
    this.#replaced.add(setting);
    setting.replace();
  }
}

/** Number of bytes of finished traces that are collected before they are written. */
const WRITE_AT_BYTES = 1024 * 1024;
const WRITE_AT_TRACES = 1024;

/**
 * One trace setting: decides which requests are traced, and passes their traces to the file. It is replaced instead of
 * changed, so that a trace ends with the setting with which it began.
 */
class TraceSetting implements TraceCollector {
  readonly levels: readonly TraceLevel[];
  /** Why nothing is recorded; empty if recording works. */
  readonly invalidReason: string;
  /** Number of traces that remain to be recorded; -1 for no limit. */
  #count: number;
  #seen = 0;
  /** Traces that used up the count. The next counter has all finished traces. */
  #counted = 0;
  #collected = 0;
  #open = 0;
  #replaced = false;
  #waiting: Trace[] = [];
  #waitingBytes = 0;
  /** Traces since the last file was complete. */
  #inFile = 0;
  /** The file that is being written. */
  #output: TraceFile | undefined;

  /**
   * @param specified names of the values that are set here instead of inherited; a model inherits from the server, and
   * the server from its start options
   * @param retired the replaced settings that still have traces in progress; this one leaves them with its last trace
   */
  constructor(
    private readonly values: TraceSettings,
    readonly specified: ReadonlySet<ChangeableTraceSetting>,
    private readonly files: TraceFiles,
    private readonly retired: Set<TraceSetting>,
  ) {
    this.levels = values.levels;
    this.#count = values.count;
    this.invalidReason = whyInvalid(values);
  }

  get settings(): TraceSettings {
    return { ...this.values, count: this.#count };
  }

  /** True while requests may be traced. */
  get valid(): boolean {
    return this.invalidReason === "" && this.#count !== 0;
  }

  nextId(): number {
    return this.files.nextId();
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
    else if (this.#waitingBytes > WRITE_AT_BYTES || this.#waiting.length >= WRITE_AT_TRACES)
      this.#write(this.#isNumbered);
  }

  /** Marks the setting as replaced. Its traces in progress are still recorded. */
  replace(): void {
    this.#replaced = true;
    if (this.#open === 0) this.save();
  }

  save(): void {
    if (this.#waiting.length > 0 || this.#output !== undefined) this.#save(this.values.logFrequency !== 0);
    if (this.#replaced) this.retired.delete(this);
  }

  /** Whether a file that must be started early will be a numbered one. */
  get #isNumbered(): boolean {
    return this.values.logFrequency !== 0 || this.#count !== -1;
  }

  #save(numbered: boolean): void {
    this.#inFile = 0;
    this.#write(numbered);
    // The file without a number stays open until the server ends.
    if (this.#output !== this.files.plain) this.#output?.end();
    this.#output = undefined;
  }

  #write(numbered: boolean): void {
    this.#output ??= numbered ? this.files.numbered() : this.files.plain;
    this.#output.write(this.#waiting);
    this.#waiting = [];
    this.#waitingBytes = 0;
  }
}

const CHUNK = 64 * 1024;
/** Bytes that may wait to be written. If the disk is slower, traces are lost, and memory stays bounded. */
export const MAX_WAITING_BYTES = 64 * 1024 * 1024;

/** The file, or the numbered files, of a server's traces. Only `close` waits for the disk. */
class TraceFiles {
  /** Traces that were lost since the start. */
  lost = 0;
  #lastId = 0;
  #waitingBytes = 0;
  #dropped = 0;
  #index = 0;
  #closed = false;
  #plain: TraceFile | undefined;
  /** The end of a chain of writes: each starts after the one before. */
  #last: Promise<void> = Promise.resolve();

  constructor(
    private readonly path: string,
    private readonly log: Pick<Log, "error">,
  ) {}

  /** The file without a number, which `close` ends. */
  get plain(): TraceFile {
    this.#plain ??= this.#open(this.path);
    return this.#plain;
  }

  /** A number for the next trace. */
  nextId(): number {
    return ++this.#lastId;
  }

  numbered(): TraceFile {
    return this.#open(`${this.path}.${this.#index++}`);
  }

  /** Ends the file. Resolves when everything is written. */
  async close(): Promise<void> {
    this.#plain?.end();
    this.#closed = true;
    await this.#last;
  }

  #open(path: string): TraceFile {
    return new TraceFile(path, this);
  }

  /** Writes after all earlier writes. */
  enqueue(byteSize: number, work: () => Promise<void>): void {
    this.#waitingBytes += byteSize;
    this.#last = this.#last.then(work).then(
      () => this.#done(byteSize),
      (error: unknown) => {
        this.#done(byteSize);
        this.log.error(`failed creating trace file: ${statusText(error)}`);
      },
    );
  }

  #done(byteSize: number): void {
    this.#waitingBytes -= byteSize;
    if (this.#waitingBytes > 0 || this.#dropped === 0) return;
    this.log.error(`${this.#dropped} traces were lost: writing '${this.path}' is slower than tracing`);
    this.#dropped = 0;
  }

  /** False if so much waits to be written that traces are lost. */
  accepts(byteSize: number, traces: number): boolean {
    if (this.#closed) return false;
    const accepts = this.#waitingBytes === 0 || this.#waitingBytes + byteSize <= MAX_WAITING_BYTES;
    if (!accepts) {
      this.#dropped += traces;
      this.lost += traces;
    }
    return accepts;
  }
}

/** A file of traces: one JSON array, written piece by piece. */
class TraceFile {
  /** True once a part of the output is on disk. */
  #begun = false;
  #any = false;
  #broken = false;

  constructor(
    private readonly path: string,
    private readonly files: TraceFiles,
  ) {}

  write(traces: readonly Trace[]): void {
    const byteSize = traces.reduce((sum, trace) => sum + trace.byteSize, 0);
    if (byteSize === 0 || !this.files.accepts(byteSize, traces.length)) return;
    const opening = this.#any ? "," : "[";
    this.#any = true;
    this.files.enqueue(byteSize, () => this.#append(jsonOf(traces, opening)));
  }

  end(): void {
    if (this.#any) this.files.enqueue(0, () => this.#append(["]"]));
  }

  async #append(pieces: Iterable<string>): Promise<void> {
    if (this.#broken) return;
    try {
      for (const chunk of chunksOf(pieces)) {
        await (this.#begun ? appendFile : writeFile)(this.path, chunk, PRIVATE_FILE);
        this.#begun = true;
      }
    } catch (error) {
      this.#broken = true;
      throw error;
    }
  }
}

function* jsonOf(traces: readonly Trace[], opening: string): Generator<string> {
  let before = opening;
  for (const { entries } of traces) {
    for (const entry of entries) {
      yield before;
      if (entry instanceof TensorActivity) yield* entry.pieces();
      else yield JSON.stringify(entry);
      before = ",";
    }
  }
}

/** Joins pieces into chunks that are large enough for a write each. */
function* chunksOf(pieces: Iterable<string>): Generator<string> {
  let chunk = "";
  for (const piece of pieces) {
    chunk += piece;
    if (chunk.length < CHUNK) continue;
    yield chunk;
    chunk = "";
  }
  if (chunk !== "") yield chunk;
}
