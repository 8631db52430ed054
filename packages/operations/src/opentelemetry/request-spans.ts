import {
  type Attributes,
  type Context,
  context,
  type Span,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import type {
  ExecutionTimes,
  LateCause,
  RequestTrace,
  TracedBatch,
  TracedRequest,
} from "@tritonjs/core/diagnostics";
import type { Tensor, TritonError } from "@tritonjs/protocol";
import {
  GeneratedAnswer,
  generationAttributes,
  generatorAttributes,
  operationOf,
  type TextGenerators,
} from "./text-generators.js";

export interface SpanMaker {
  readonly tracer: Tracer;
  readonly generators: TextGenerators;
  readonly now: () => number;
  /** Wall time minus the time on the clock of the server, in milliseconds. */
  readonly wallOffsetMs: number;
}

/**
 * The spans of one request:
 *
 * ```
 * InferRequest                 only for a request that came over a network
 * └── <model>                  active in the model's callback
 *     ├── compute
 *     └── <model that it called>
 * ```
 */
export class RequestSpans implements RequestTrace {
  readonly #frontend: Span | undefined;
  #lastMarkMs = 0;
  #context: Context | undefined;
  #span: Span | undefined;
  #begun = false;
  #ended = false;
  #error: TritonError | undefined;
  #startMs = 0;
  #answer: GeneratedAnswer | undefined;

  constructor(
    private readonly maker: SpanMaker,
    private readonly modelName: string,
    /** The context of the sender. */
    private readonly parent: Context,
    frontend?: Span,
  ) {
    this.#frontend = frontend;
  }

  get traceId(): string {
    return this.#model.spanContext().traceId;
  }

  get traceparent(): string {
    const { traceId, spanId, traceFlags } = this.#model.spanContext();
    const flags = (traceFlags & TraceFlags.SAMPLED).toString(16).padStart(2, "0");
    return `00-${traceId}-${spanId}-${flags}`;
  }

  get sampled(): boolean {
    return (this.#model.spanContext().traceFlags & TraceFlags.SAMPLED) !== 0;
  }

  child(modelName: string): RequestSpans {
    return new RequestSpans(this.maker, modelName, this.#own);
  }

  within<T>(fn: () => T): T {
    return context.with(this.#own, fn);
  }

  mark(name: string, atMs: number): void {
    this.#lastMarkMs = atMs;
    this.#frontend?.addEvent(name, this.#time(atMs));
  }

  begin(modelName: string, modelVersion: number, request: TracedRequest, atMs: number): void {
    if (this.#begun || this.#ended) return;
    this.#begun = true;
    this.#startMs = atMs;
    const generated = Object.hasOwn(this.maker.generators, modelName);
    this.#model
      .setAttributes({
        "triton.model_name": modelName,
        "triton.model_version": modelVersion,
        "triton.request_id": request.id,
        ...(generated && generationAttributes(request)),
      })
      .addEvent("REQUEST_START", this.#time(atMs))
      .addEvent("QUEUE_START", this.#time(atMs));
  }

  batch({ batchSize, requestCount, cut, instance }: TracedBatch): void {
    this.#model.setAttributes({
      "tritonjs.batch.size": batchSize,
      "tritonjs.batch.requests": requestCount,
      ...(cut !== undefined && { "tritonjs.batch.cut": cut }),
      "tritonjs.batch.instance": instance,
    });
  }

  late(cause: LateCause): void {
    this.#model.setAttributes({ "tritonjs.late_cause": cause });
  }

  compute({ start, inputEnd, inferEnd, end }: ExecutionTimes): void {
    const span = this.maker.tracer.startSpan("compute", { startTime: this.#time(start) }, this.#own);
    span
      .addEvent("COMPUTE_START", this.#time(start))
      .addEvent("COMPUTE_INPUT_END", this.#time(inputEnd))
      .addEvent("COMPUTE_OUTPUT_START", this.#time(inferEnd))
      .addEvent("COMPUTE_END", this.#time(end))
      .end(this.#time(end));
  }

  /** Records numbers of tokens. Other tensors are not recorded. */
  outputs(tensors: ReadonlyMap<string, Tensor>): void {
    if (!Object.hasOwn(this.maker.generators, this.modelName)) return;
    this.#answer ??= new GeneratedAnswer(this.maker.now() - this.#startMs);
    this.#answer.take(tensors);
  }

  end(atMs: number, error?: TritonError): void {
    if (this.#ended) return;
    this.#ended = true;
    const span = this.#model;
    if (this.#begun) span.addEvent("REQUEST_END", this.#time(atMs));
    if (error !== undefined) fail(span, error);
    this.#error = error;
    if (this.#answer !== undefined) span.setAttributes(this.#answer.attributes);
    span.end(this.#time(atMs));
  }

  release(status?: number | string): void {
    // The frontend has refused the request itself, before any model got it.
    if (!this.#begun && this.#span !== undefined) this.end(this.#lastMarkMs);
    if (this.#frontend === undefined) return;
    if (status !== undefined) answered(this.#frontend, status, this.#error);
    else if (this.#error !== undefined) fail(this.#frontend, this.#error);
    this.#frontend.end(this.#time(this.#lastMarkMs));
  }

  /** The span of the model, started when it is first needed. */
  get #model(): Span {
    if (this.#span === undefined) {
      const { tracer, generators, now } = this.maker;
      const generator = Object.hasOwn(generators, this.modelName) ? generators[this.modelName] : undefined;
      const name = generator === undefined ? this.modelName : `${operationOf(generator)} ${this.modelName}`;
      const attributes: Attributes =
        generator === undefined ? {} : generatorAttributes(this.modelName, generator);
      this.#span = tracer.startSpan(name, { attributes, startTime: this.#time(now()) }, this.parent);
    }
    return this.#span;
  }

  /** The context of the sender with the span of the model. */
  get #own(): Context {
    this.#context ??= trace.setSpan(this.parent, this.#model);
    return this.#context;
  }

  #time(atMs: number): number {
    return this.maker.wallOffsetMs + atMs;
  }
}

/** By the semantic conventions, mistakes of the client are not errors of the server. */
function answered(span: Span, status: number | string, error: TritonError | undefined): void {
  if (typeof status === "number") span.setAttribute("http.response.status_code", status);
  else span.setAttribute("rpc.response.status_code", status);
  const failed = typeof status === "number" ? status >= 500 : SERVER_ERRORS.has(status);
  if (!failed) return;
  if (error !== undefined) fail(span, error);
  else span.setAttribute("error.type", String(status)).setStatus({ code: SpanStatusCode.ERROR });
}

/** Statuses of gRPC that are errors of the server. */
const SERVER_ERRORS: ReadonlySet<string> = new Set([
  "UNKNOWN",
  "DEADLINE_EXCEEDED",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
]);

function fail(span: Span, error: TritonError): void {
  span.setAttribute("error.type", error.reason ?? error.code);
  span.setStatus({ code: SpanStatusCode.ERROR, message: error.message });
}
