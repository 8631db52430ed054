import {
  assertOptions,
  errorFor,
  NO_PARAMETERS,
  optionTypes,
  type Tensor,
  type TritonError,
} from "@tritonjs/protocol";
import type {
  RequestOrigin,
  RequestTrace,
  RequestTracer,
  TracedBatch,
  TracedRequest,
} from "../observe/request-trace.js";
import type { ExecutionTimes } from "../observe/statistics.js";
import { type Clock, realClock } from "../system/clock.js";
import { copyTensor } from "../tensor-rows.js";
import { type CapturedRequest, CaptureFiles } from "./capture-files.js";

export type { CapturedRequest } from "./capture-files.js";

/** What is captured, and where it goes. */
export interface CaptureOptions {
  /** Directory of the files; it is made if it does not exist. */
  readonly directory: string;
  /** Share of the requests that are captured, from 0 to 1. @default 0.01 */
  readonly rate?: number;
  /** Names of the models. @default all */
  readonly models?: readonly string[];
  /** Bytes of captured requests that make a file complete. @default 8388608 */
  readonly maxBytes?: number;
  /** Seconds after which a file is complete. @default 60 */
  readonly maxAgeSeconds?: number;
  /**
   * What is left out: tensors by name, or as a function decides, which returns the request to keep, or undefined for
   * none. @default nothing
   */
  readonly redact?: readonly string[] | ((request: CapturedRequest) => CapturedRequest | undefined);
  /** Encrypts a complete file. Its name then ends in `.encrypted`. @default no encryption */
  readonly encrypt?: (file: Uint8Array) => Uint8Array | Promise<Uint8Array>;
  /** Another tracer that gets all requests: `openTelemetry()`. @default none */
  readonly next?: RequestTracer;
  /** Clock of the age of files. @default the real clock */
  readonly clock?: Clock;
}

const TYPES = optionTypes<CaptureOptions>({
  directory: "string",
  rate: "number",
  models: "array",
  maxBytes: "number",
  maxAgeSeconds: "number",
  redact: ["array", "function"],
  encrypt: "function",
  next: "object",
  clock: "object",
});

/**
 * Captures some of the requests with their answers in Parquet files, which pandas and DuckDB open, and which `tritonjs
 * replay` sends again. It needs the package `hyparquet-writer`. A full disk loses captured requests and nothing else.
 *
 * @returns a tracer, for the option `tracer` of a `Triton`
 * @throws TritonError INVALID_ARG for options that are not valid, and for a directory that cannot be made
 * @example
 * ```ts
 * const triton = new Triton({ tracer: capture({ directory: "/var/lib/captures", rate: 0.01, redact: ["face"] }) });
 * ```
 */
export function capture(options: CaptureOptions): RequestTracer {
  assertOptions("capture()", options, TYPES, undefined, ["directory"]);
  const { rate = 0.01, maxBytes = 8 * 1024 * 1024, maxAgeSeconds = 60 } = options;
  if (!(rate >= 0 && rate <= 1)) {
    throw errorFor("INVALID_OPTION", `capture(), option 'rate': expected a number from 0 to 1, got ${rate}`);
  }
  for (const [name, value] of Object.entries({ maxBytes, maxAgeSeconds })) {
    if (value > 0) continue;
    throw errorFor("INVALID_OPTION", `capture(), option '${name}': expected a number above 0, got ${value}`);
  }
  return new CaptureTracer({ ...options, rate, maxBytes, maxAgeSeconds });
}

type ResolvedCapture = CaptureOptions & Required<Pick<CaptureOptions, "rate" | "maxBytes" | "maxAgeSeconds">>;

class CaptureTracer implements RequestTracer {
  readonly #options: ResolvedCapture;
  readonly #files: CaptureFiles;
  readonly #models: ReadonlySet<string> | undefined;
  /** Share of a request that is due; 1 selects the next one. */
  #due = 0;

  constructor(options: ResolvedCapture) {
    const { directory, maxBytes, maxAgeSeconds, encrypt, models, clock = realClock } = options;
    this.#options = options;
    this.#models = models && new Set(models);
    this.#files = new CaptureFiles({ directory, maxBytes, maxAgeSeconds, encrypt }, clock);
  }

  skips(modelName: string): boolean {
    if (this.#models === undefined || this.#models.has(modelName)) this.#due += this.#options.rate;
    return this.#due < 1 && this.#options.next === undefined;
  }

  start(origin: RequestOrigin): RequestTrace | undefined {
    const { next } = this.#options;
    const followed = next?.start(origin);
    if (this.#due < 1) return followed;
    this.#due--;
    if (!this.#files.hasRoom) {
      this.#files.lost++;
      return followed;
    }
    return new CaptureTrace(this, origin.wallOffsetMs, followed);
  }

  get lostSpans(): number {
    return this.#files.lost + (this.#options.next?.lostSpans ?? 0);
  }

  async close(): Promise<void> {
    await Promise.all([this.#files.close(), this.#options.next?.close?.()]);
  }

  add(request: CapturedRequest): void {
    const { redact } = this.#options;
    if (redact === undefined) this.#files.add(request);
    else if (typeof redact === "function") {
      const kept = this.#redacted(redact, request);
      if (kept !== undefined) this.#files.add(kept);
    } else {
      const without = (tensors: ReadonlyMap<string, Tensor>) =>
        new Map([...tensors].filter(([name]) => !redact.includes(name)));
      this.#files.add({ ...request, inputs: without(request.inputs), outputs: without(request.outputs) });
    }
  }

  /** A request that the function cannot redact is not kept. */
  #redacted(
    redact: (request: CapturedRequest) => CapturedRequest | undefined,
    request: CapturedRequest,
  ): CapturedRequest | undefined {
    try {
      return redact(request);
    } catch (error) {
      this.#files.lost++;
      process.emitWarning(error instanceof Error ? error : String(error));
      return undefined;
    }
  }
}

const NOTHING: ReadonlyMap<string, Tensor> = new Map();

/** Copies what goes through a request, and passes all events on. */
class CaptureTrace implements RequestTrace {
  readonly traceId: string | undefined;
  readonly traceparent: string | undefined;
  readonly sampled: boolean;
  #request: Omit<CapturedRequest, "durationMs" | "error" | "outputs" | "responses"> | undefined;
  #startMs = 0;
  #outputs = NOTHING;
  #responses = 0;

  constructor(
    private readonly tracer: CaptureTracer,
    private readonly wallOffsetMs: number,
    private readonly next: RequestTrace | undefined,
  ) {
    this.traceId = next?.traceId;
    this.traceparent = next?.traceparent;
    this.sampled = next?.sampled ?? false;
  }

  /** Requests that this one causes are not captured: sending it again causes them again. */
  child(modelName: string): RequestTrace {
    return this.next?.child(modelName) ?? NO_TRACE;
  }

  within<T>(fn: () => T): T {
    return this.next === undefined ? fn() : this.next.within(fn);
  }

  mark(name: string, atMs: number): void {
    this.next?.mark(name, atMs);
  }

  begin(model: string, version: number, request: TracedRequest, atMs: number): void {
    this.next?.begin(model, version, request, atMs);
    const { id, parameters = NO_PARAMETERS, inputs } = request;
    this.#startMs = atMs;
    const time = Math.round(atMs + this.wallOffsetMs);
    this.#request = { model, version, id, time, parameters, inputs: copies(inputs) };
  }

  batch(batch: TracedBatch): void {
    this.next?.batch(batch);
  }

  compute(times: ExecutionTimes): void {
    this.next?.compute(times);
  }

  outputs(tensors: ReadonlyMap<string, Tensor>): void {
    this.next?.outputs(tensors);
    if (this.#responses++ === 0) this.#outputs = copies(tensors);
  }

  end(atMs: number, error?: TritonError): void {
    this.next?.end(atMs, error);
    const request = this.#request;
    if (request === undefined) return;
    this.#request = undefined;
    this.tracer.add({
      ...request,
      durationMs: atMs - this.#startMs,
      outputs: error === undefined ? this.#outputs : NOTHING,
      responses: this.#responses,
      error: error && `${error.code}: ${error.message}`,
    });
  }

  release(status?: number | string): void {
    this.next?.release(status);
  }
}

function copies(tensors: ReadonlyMap<string, Tensor>): ReadonlyMap<string, Tensor> {
  const all = new Map<string, Tensor>();
  for (const [name, tensor] of tensors) all.set(name, copyTensor(tensor));
  return all;
}

/** The trace of a request that nothing records. */
const NO_TRACE: RequestTrace = {
  traceId: undefined,
  traceparent: undefined,
  sampled: false,
  child: () => NO_TRACE,
  within: (fn) => fn(),
  mark() {},
  begin() {},
  batch() {},
  compute() {},
  outputs() {},
  end() {},
  release() {},
};
