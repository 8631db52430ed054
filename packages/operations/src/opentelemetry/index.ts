import {
  type Context,
  context,
  type MeterProvider,
  metrics,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  type TextMapPropagator,
  type Tracer,
  type TracerProvider,
  trace,
} from "@opentelemetry/api";
import type { RequestArrival, RequestOrigin, RequestTracer } from "@tritonjs/core/diagnostics";
import type { Extension } from "@tritonjs/core/extension";
import { meterRequests } from "./request-meters.js";
import { RequestSpans, type SpanMaker } from "./request-spans.js";
import type { TextGenerators } from "./text-generators.js";

export type { TextGenerator, TextGenerators } from "./text-generators.js";

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
