import {
  type Attributes,
  type Context,
  context,
  type Meter,
  type MeterProvider,
  metrics,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type TextMapPropagator,
  TraceFlags,
  type Tracer,
  type TracerProvider,
  trace,
} from "@opentelemetry/api";
import {
  type DiagnosedRequest,
  type DiagnosticMessages,
  type ExecutionTimes,
  type LateCause,
  onDiagnostics,
  onExecution,
  type RequestArrival,
  type RequestOrigin,
  type RequestTrace,
  type RequestTracer,
  type TracedBatch,
  type TracedRequest,
} from "@tritonjs/core/diagnostics";
import type { Extension } from "@tritonjs/core/extension";
import type { Tensor, TritonError } from "@tritonjs/protocol";

/** Options of `openTelemetry`. */
export interface OpenTelemetryOptions {
  /** Makes the spans. @default the provider that the program has registered */
  readonly tracerProvider?: TracerProvider;
  /** Reads the context of clients from headers. @default the propagator that the program has registered */
  readonly propagator?: TextMapPropagator;
  /**
   * Whether requests and batches are measured, too: by the meter provider that the program has registered, or by the
   * given one. All servers of the process are measured together, so only one of them should ask for it.
   * @default false
   */
  readonly meters?: boolean | MeterProvider;
  /** Models that generate text. Their spans and metrics follow the conventions for generative AI. @default none */
  readonly textGenerators?: TextGenerators;
  /**
   * Number of spans that the provider has lost since the start, for the metric `tritonjs_trace_lost_total`.
   * @default not known
   */
  readonly lostSpans?: () => number;
}

/** Name of the instrumentation in spans and metrics. */
const SCOPE = "@tritonjs/operations/opentelemetry";

const headersOf = {
  keys: () => [],
  get: (arrival: RequestArrival, name: string) => arrival.header(name),
};

/**
 * Makes spans of requests with the OpenTelemetry of the program. A request is part of the trace that is active where it
 * is sent, or that its headers name. The span of a request is the active one in the callback of its model, so spans
 * that the callback makes are its children.
 *
 * @example
 * ```ts
 * const triton = new Triton({ extensions: [openTelemetry({ meters: true })] });
 * ```
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): Extension {
  const { textGenerators: generators = {}, meters = false, lostSpans } = options;
  let endMeters = (): void => {};
  return {
    name: "opentelemetry",
    attach: () => ({
      tracer: new SpanTracer(options, lostSpans),
      start() {
        if (meters === false) return;
        const provider = meters === true ? metrics.getMeterProvider() : meters;
        endMeters = meterRequests(provider.getMeter(SCOPE), generators);
      },
      close: () => endMeters(),
    }),
  };
}

class SpanTracer implements RequestTracer {
  readonly #tracer: Tracer;
  readonly #generators: TextGenerators;
  readonly #propagator: Pick<TextMapPropagator, "extract">;

  constructor(
    { textGenerators = {}, tracerProvider, propagator = propagation }: OpenTelemetryOptions,
    private readonly lost: (() => number) | undefined,
  ) {
    this.#generators = textGenerators;
    this.#tracer = (tracerProvider ?? trace.getTracerProvider()).getTracer(SCOPE);
    this.#propagator = propagator;
  }

  get lostSpans(): number {
    return this.lost?.() ?? 0;
  }

  start({ modelName, selected, arrival, now, wallOffsetMs }: RequestOrigin): RequestSpans | undefined {
    const tracer = this.#tracer;
    const maker: SpanMaker = { tracer, generators: this.#generators, now, wallOffsetMs };
    const active = context.active();
    const isInner = trace.getSpanContext(active) !== undefined;
    const parent =
      isInner || arrival === undefined ? active : this.#propagator.extract(active, arrival, headersOf);
    if (!selected && trace.getSpanContext(parent) === undefined) return undefined;
    if (arrival === undefined) return new RequestSpans(maker, modelName, parent);
    const frontend = tracer.startSpan(
      "InferRequest",
      {
        // An HTTP server that is instrumented has made the span of the server already.
        kind: isInner ? SpanKind.INTERNAL : SpanKind.SERVER,
        startTime: wallOffsetMs + arrival.startMs,
        attributes: {
          "network.protocol.name": arrival.protocol,
          ...(!isInner && arrival.attributes?.()),
        },
      },
      parent,
    );
    return new RequestSpans(maker, modelName, trace.setSpan(parent, frontend), frontend);
  }
}

/**
 * Headers that carry the active context to another server, for the option `headers` of a client's call.
 *
 * @example
 * ```ts
 * await client.infer("resnet", { inputs, headers: traceHeaders() });
 * ```
 */
export function traceHeaders(): Record<string, string> {
  const headers: Record<string, string> = {};
  propagation.inject(context.active(), headers);
  return headers;
}

/**
 * The context of a request in a worker, where the span of the request is remote. Spans that the callback makes there
 * become its children. It needs a propagator that is registered in the worker.
 *
 * @param request request as the callback gets it
 * @example
 * ```ts
 * export default sample((inputs, { requests }) =>
 *   context.with(requestContext(requests[0]), () => compute(inputs)));
 * ```
 */
export function requestContext(request: { readonly traceparent?: string | undefined } | undefined): Context {
  const { traceparent } = request ?? {};
  return traceparent === undefined ? ROOT_CONTEXT : propagation.extract(ROOT_CONTEXT, { traceparent });
}

/** Bounds of durations in seconds, as the semantic conventions advise for servers. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Times since the acceptance of a request at which its responses came, and tokens of all but the first of them. */
interface GeneratedTimes {
  readonly firstMs: number;
  lastMs: number;
  tokensAfterFirst: number;
}

const NOT_GENERATED: GeneratedTimes = { firstMs: 0, lastMs: 0, tokensAfterFirst: 0 };

/**
 * Measures the requests and batches of all servers of this process, from their diagnostics channels.
 *
 * @returns function that ends the measurement
 */
function meterRequests(meter: Meter, generators: TextGenerators): () => void {
  const seconds = { unit: "s", advice: { explicitBucketBoundaries: SECONDS } };
  const duration = meter.createHistogram("tritonjs.request.duration", {
    ...seconds,
    description: "Time from the acceptance of a request to its last answer.",
  });
  const active = meter.createUpDownCounter("tritonjs.request.active", {
    unit: "{request}",
    description: "Requests that were accepted and not yet answered.",
  });
  const batchSize = meter.createHistogram("tritonjs.batch.size", {
    unit: "{row}",
    description: "Rows of a batch.",
    advice: { explicitBucketBoundaries: [1, 2, 4, 8, 16, 32, 64, 128, 256] },
  });
  const batchDuration = meter.createHistogram("tritonjs.batch.duration", {
    ...seconds,
    description: "Time in which an instance ran a batch.",
  });
  const generation = meter.createHistogram("gen_ai.server.request.duration", {
    ...seconds,
    description: "Time from the acceptance of a request to a text generator to its last answer.",
  });
  const firstToken = meter.createHistogram("gen_ai.server.time_to_first_token", {
    ...seconds,
    description: "Time from the acceptance of a request to a text generator to its first response.",
  });
  const perToken = meter.createHistogram("gen_ai.server.time_per_output_token", {
    ...seconds,
    description: "Mean time of an output token after the first one, where the responses tell their tokens.",
  });
  /** Times and tokens of the responses to requests to text generators. */
  const generated = new WeakMap<DiagnosedRequest, GeneratedTimes>();
  /** Requests that were counted as active; those accepted before are not. */
  const counted = new WeakSet<DiagnosedRequest>();
  const startedAt = new WeakMap<object, number>();
  const responded = ({ request, outputs, durationMs }: DiagnosticMessages["tritonjs:request:response"]) => {
    const { model } = request;
    if (!Object.hasOwn(generators, model)) return;
    const times = generated.get(request);
    if (times === undefined) {
      firstToken.record(durationMs / 1000, generatorAttributes(model, generators[model]!));
      generated.set(request, { firstMs: durationMs, lastMs: durationMs, tokensAfterFirst: 0 });
      return;
    }
    times.lastMs = durationMs;
    times.tokensAfterFirst += tokenCounts(outputs).output ?? 0;
  };
  const ends = [
    onDiagnostics("tritonjs:request:start", ({ request }) => {
      counted.add(request);
      active.add(1, modelAttributes(request));
    }),
    ...(Object.keys(generators).length === 0 ? [] : [onDiagnostics("tritonjs:request:response", responded)]),
    onDiagnostics("tritonjs:request:settled", ({ request, error, durationMs }) => {
      const about = modelAttributes(request);
      if (counted.delete(request)) active.add(-1, about);
      const outcome = error === undefined ? {} : { "error.type": error.reason ?? error.code };
      duration.record(durationMs / 1000, { ...about, ...outcome });
      const { model } = request;
      if (!Object.hasOwn(generators, model)) return;
      const attributes = generatorAttributes(model, generators[model]!);
      generation.record(durationMs / 1000, { ...attributes, ...outcome });
      const { firstMs, lastMs, tokensAfterFirst } = generated.get(request) ?? NOT_GENERATED;
      if (tokensAfterFirst > 0) perToken.record((lastMs - firstMs) / 1000 / tokensAfterFirst, attributes);
    }),
    onExecution({
      start: (batch) => {
        startedAt.set(batch, performance.now());
        const cut = batch.cut === undefined ? {} : { "tritonjs.batch.cut": batch.cut };
        batchSize.record(batch.batchSize, { ...modelAttributes(batch), ...cut });
      },
      end: (batch) => {
        const start = startedAt.get(batch);
        if (start !== undefined)
          batchDuration.record((performance.now() - start) / 1000, modelAttributes(batch));
      },
    }),
  ];
  return () => {
    for (const end of ends) end();
  };
}

function modelAttributes({
  model,
  version,
}: {
  readonly model: string;
  readonly version: string;
}): Attributes {
  return { "triton.model_name": model, "triton.model_version": version };
}

interface SpanMaker {
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
class RequestSpans implements RequestTrace {
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

/** How a model that generates text is described, by the semantic conventions for generative AI. */
export interface TextGenerator {
  /** `gen_ai.operation.name`. @default "text_completion" */
  readonly operation?: "chat" | "text_completion" | "generate_content" | "embeddings" | (string & {});
  /** `gen_ai.provider.name`. @default "tritonjs" */
  readonly provider?: string;
}

/** Text generators by the names of their models. */
export type TextGenerators = Readonly<Record<string, TextGenerator>>;

/** Attributes made of the parameters of a request, which have the same names without the prefix. */
const OF_PARAMETERS = [
  "max_tokens",
  "temperature",
  "top_p",
  "top_k",
  "frequency_penalty",
  "presence_penalty",
  "seed",
] as const;

function operationOf({ operation = "text_completion" }: TextGenerator): string {
  return operation;
}

/** Attributes of a generator's spans and metrics. */
function generatorAttributes(modelName: string, generator: TextGenerator): Attributes {
  return {
    "gen_ai.operation.name": operationOf(generator),
    "gen_ai.provider.name": generator.provider ?? "tritonjs",
    "gen_ai.request.model": modelName,
    "gen_ai.response.model": modelName,
  };
}

/** Attributes of a request to a generator, from its `sampling_parameters` in JSON, or else from its parameters. */
function generationAttributes({ inputs, parameters = {} }: TracedRequest): Attributes {
  const values = samplingParameters(inputs.get("sampling_parameters")) ?? parameters;
  const attributes: Attributes = {};
  for (const name of OF_PARAMETERS) {
    const value = values[name];
    if (typeof value === "number" || typeof value === "bigint")
      attributes[`gen_ai.request.${name}`] = Number(value);
  }
  return attributes;
}

/** Larger JSON has more than numbers, such as a schema, and reading it twice would cost too much. */
const MOST_BYTES = 16 * 1024;

function samplingParameters(tensor: Tensor | undefined): Readonly<Record<string, unknown>> | undefined {
  const bytes = tensor?.datatype === "BYTES" ? (tensor.elements[0] as Uint8Array | undefined) : undefined;
  if (bytes === undefined || bytes.length > MOST_BYTES) return undefined;
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** Numbers of tokens in a response of a text generator; undefined where the response does not tell them. */
interface TokenCounts {
  readonly input: number | undefined;
  /** Tokens of this response, not of those before it. */
  readonly output: number | undefined;
}

/** Reads the outputs `num_input_tokens` and `num_output_tokens`, which text models send when a request asks for them. */
function tokenCounts(outputs: ReadonlyMap<string, Tensor>): TokenCounts {
  return {
    input: total(outputs.get("num_input_tokens")),
    output: total(outputs.get("num_output_tokens")),
  };
}

/** The tokens and times of all responses of a text generator to one request. */
class GeneratedAnswer {
  #input: number | undefined;
  #output: number | undefined;

  /** @param firstMs milliseconds from the acceptance of the request to its first response */
  constructor(private readonly firstMs: number) {}

  take(outputs: ReadonlyMap<string, Tensor>): void {
    const { input, output } = tokenCounts(outputs);
    this.#input = input ?? this.#input;
    if (output !== undefined) this.#output = (this.#output ?? 0) + output;
  }

  get attributes(): Attributes {
    return {
      "gen_ai.response.time_to_first_chunk": this.firstMs / 1000,
      ...(this.#input !== undefined && { "gen_ai.usage.input_tokens": this.#input }),
      ...(this.#output !== undefined && { "gen_ai.usage.output_tokens": this.#output }),
    };
  }
}

/** Sum over the rows of a tensor; undefined for a tensor that is missing or has no numbers. */
function total(tensor: Tensor | undefined): number | undefined {
  if (tensor === undefined || !Object.hasOwn(NUMBERS, tensor.datatype)) return undefined;
  let sum = 0;
  for (const value of tensor.elements as Iterable<number | bigint>) sum += Number(value);
  return sum;
}

/** Data types in which backends give numbers of tokens. */
const NUMBERS = { UINT32: true, UINT64: true, INT32: true, INT64: true };
