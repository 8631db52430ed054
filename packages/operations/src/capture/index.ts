import {
  BaseTrace,
  type RequestOrigin,
  type RequestTrace,
  type RequestTracer,
  type TracedRequest,
} from "@tritonjs/core/diagnostics";
import type { Extension, ExtensionParts, ExtensionServer } from "@tritonjs/core/extension";
import { copyTensor } from "@tritonjs/core/internal";
import {
  assertOptions,
  errorFor,
  NO_PARAMETERS,
  optionTypes,
  Tensor,
  type TritonError,
} from "@tritonjs/protocol";
import { type CapturedRequest, type CaptureFileOptions, CaptureFiles } from "./capture-files.js";

export type { CapturedRequest } from "./capture-files.js";

/** Options of captures: which requests, and in which files. */
export interface CaptureOptions extends CaptureFileOptions {
  /** Share of the requests that are captured, from 0 to 1. @default 0.01 */
  readonly rate?: number;
  /** Names of the models. @default all */
  readonly models?: readonly string[];
  /**
   * Tensors and parameters that are left out: by name, or as a function decides, which returns the request to keep, or
   * undefined for none. The text of an error may quote a tensor, so only its code is kept, unless the function returns
   * another text. @default nothing
   */
  readonly redact?: readonly string[] | ((request: CapturedRequest) => CapturedRequest | undefined);
}

const TYPES = optionTypes<CaptureOptions>({
  directory: "string",
  rate: "number",
  models: "array",
  maxBytes: "number",
  maxAgeSeconds: "number",
  redact: ["array", "function"],
  encrypt: "function",
});

/**
 * Captures some of the requests with their answers in Parquet files, which pandas and DuckDB open, and which `tritonjs
 * replay` sends again. It needs the package `hyparquet-writer`. A full disk loses captured requests and nothing else.
 *
 * Trace settings neither start nor stop it.
 *
 * @returns an extension. Its server does not start without `hyparquet-writer`
 * @throws TritonError INVALID_ARG for options that are not valid, and for a directory that cannot be made or written
 * @example
 * ```ts
 * const captures = capture({ directory: "/var/lib/captures", rate: 0.01, redact: ["face"] });
 * const triton = new Triton({ extensions: [captures] });
 * ```
 */
export function capture(options: CaptureOptions): Captures {
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

/** The captures of a server. */
export interface Captures extends Extension {
  /** Captured requests that were lost since the start, because the disk was too slow or full. */
  readonly lostSpans: number;
}

type ResolvedCapture = CaptureOptions & Required<Pick<CaptureOptions, "rate" | "maxBytes" | "maxAgeSeconds">>;

class CaptureTracer implements Captures, RequestTracer {
  readonly name = "captures";
  readonly always = true;
  readonly #options: ResolvedCapture;
  readonly #files: CaptureFiles;
  readonly #models: ReadonlySet<string> | undefined;
  /** Share of a request that is due; 1 selects the next one. */
  #due = 0;

  constructor(options: ResolvedCapture) {
    const { models } = options;
    this.#options = options;
    this.#models = models && new Set(models);
    this.#files = new CaptureFiles(options);
  }

  attach({ clock }: ExtensionServer): ExtensionParts {
    const files = this.#files;
    files.follow(clock);
    return { tracer: this, start: () => files.ready(), close: () => files.close() };
  }

  skips(modelName: string): boolean {
    if (this.#models === undefined || this.#models.has(modelName)) this.#due += this.#options.rate;
    return this.#due < 1;
  }

  start(origin: RequestOrigin): RequestTrace | undefined {
    this.#due--;
    if (this.#files.hasRoom) return new CaptureTrace(this, origin.wallOffsetMs);
    this.#files.lost++;
    return undefined;
  }

  get lostSpans(): number {
    return this.#files.lost;
  }

  add(request: CapturedRequest): void {
    const { redact = [] } = this.#options;
    const kept = typeof redact === "function" ? this.#redacted(redact, request) : without(redact, request);
    if (kept !== undefined) this.#files.add(kept);
  }

  /** A request that the function cannot redact is not kept. */
  #redacted(
    redact: (request: CapturedRequest) => CapturedRequest | undefined,
    request: CapturedRequest,
  ): CapturedRequest | undefined {
    try {
      const kept = redact(request);
      return kept === undefined || kept.error !== request.error ? kept : withoutText(kept);
    } catch (error) {
      this.#files.lost++;
      process.emitWarning(error instanceof Error ? error : String(error));
      return undefined;
    }
  }
}

function without(names: readonly string[], request: CapturedRequest): CapturedRequest {
  if (names.length === 0) return request;
  const others = <V>(entries: Iterable<[string, V]>) =>
    [...entries].filter(([name]) => !names.includes(name));
  const { parameters, inputs, outputs } = request;
  return withoutText({
    ...request,
    parameters: Object.fromEntries(others(Object.entries(parameters))),
    inputs: new Map(others(inputs)),
    outputs: new Map(others(outputs)),
  });
}

/** Keeps only the code of an error, because its text may quote a tensor. */
function withoutText(request: CapturedRequest): CapturedRequest {
  const { error } = request;
  if (error === undefined) return request;
  return {
    ...request,
    error: `${error.split(":", 1)[0]}: the text is left out, because tensors are redacted`,
  };
}

const NOTHING: ReadonlyMap<string, Tensor> = new Map();

/** Copies the tensors of a request. Requests that it causes are not captured: sending it again causes them again. */
class CaptureTrace extends BaseTrace {
  #request: { -readonly [K in keyof CapturedRequest]: CapturedRequest[K] } | undefined;
  #startMs = 0;

  constructor(
    private readonly tracer: CaptureTracer,
    private readonly wallOffsetMs: number,
  ) {
    super();
  }

  override begin(model: string, version: number, request: TracedRequest, atMs: number): void {
    const { id, parameters = NO_PARAMETERS, inputs } = request;
    this.#startMs = atMs;
    this.#request = {
      model,
      version,
      id,
      time: Math.round(atMs + this.wallOffsetMs),
      durationMs: 0,
      parameters,
      inputs: copies(inputs),
      outputs: NOTHING,
      responses: 0,
      error: undefined,
    };
  }

  override outputs(tensors: ReadonlyMap<string, Tensor>): void {
    const request = this.#request;
    if (request !== undefined && request.responses++ === 0) request.outputs = copies(tensors);
  }

  override end(atMs: number, error?: TritonError): void {
    const request = this.#request;
    if (request === undefined) return;
    this.#request = undefined;
    request.durationMs = atMs - this.#startMs;
    if (error !== undefined) {
      request.outputs = NOTHING;
      request.error = `${error.code}: ${error.message}`;
    }
    this.tracer.add(request);
  }
}

function copies(tensors: ReadonlyMap<string, Tensor>): ReadonlyMap<string, Tensor> {
  const all = new Map<string, Tensor>();
  for (const [name, tensor] of tensors) all.set(name, copyOf(tensor));
  return all;
}

/** Small tensors share buffers: a buffer of its own costs more than the copy. */
const SHARED_BYTES = 256 * 1024;
const SMALL_BYTES = SHARED_BYTES / 16;
let shared = new ArrayBuffer(0);
let sharedUsed = 0;

function copyOf(tensor: Tensor): Tensor {
  const { datatype, shape, elements, byteLength } = tensor;
  if (Array.isArray(elements) || byteLength > SMALL_BYTES) return copyTensor(tensor);
  if (sharedUsed + byteLength > shared.byteLength) {
    shared = new ArrayBuffer(SHARED_BYTES);
    sharedUsed = 0;
  }
  const ElementArray = elements.constructor as Float32ArrayConstructor;
  const copy = new ElementArray(shared, sharedUsed, elements.length);
  copy.set(elements as Float32Array);
  sharedUsed += (byteLength + 7) & ~7;
  return Tensor.fromElements(datatype, shape, copy);
}
