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
import type { Tensor, TritonError } from "@tritonjs/protocol";
import type { ExecutionTimes } from "../observe/durations.js";
import type { RequestTrace, TracedBatch, TracedRequest } from "../observe/request-trace.js";

/** Shared by all spans of one request and of the requests that it causes. */
export interface SpanMaker {
  readonly tracer: Tracer;
  readonly generators: TextGenerators;
  /** Present time on the clock of the server, in milliseconds. */
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
  /** The span of the frontend. */
  readonly #frontend: Span | undefined;
  #lastMarkMs = 0;
  #context: Context | undefined;
  #span: Span | undefined;
  #begun = false;
  #ended = false;
  #error: TritonError | undefined;
  #startMs = 0;
  /** The answers of a text generator so far. */
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

/**
 * Sets what a server's span says of the answer. By the semantic conventions, mistakes of the client are not errors of the
 * server.
 */
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
export function generatorAttributes(modelName: string, generator: TextGenerator): Attributes {
  return {
    "gen_ai.operation.name": operationOf(generator),
    "gen_ai.provider.name": generator.provider ?? "tritonjs",
    "gen_ai.request.model": modelName,
    "gen_ai.response.model": modelName,
  };
}

/**
 * Attributes of one request to a generator: of the JSON object in its input `sampling_parameters` or, without it, of its
 * parameters.
 */
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
export function tokenCounts(outputs: ReadonlyMap<string, Tensor>): TokenCounts {
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

  /** Counts a response. */
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
