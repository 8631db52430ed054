import {
  type Context,
  context,
  type MeterProvider,
  metrics,
  propagation,
  SpanKind,
  type TextMapPropagator,
  type TracerProvider,
  trace,
} from "@opentelemetry/api";
import type { RequestArrival, RequestOrigin, RequestTracer } from "@tritonjs/core/diagnostics";
import { meterRequests } from "./meters/request-meters.js";
import { RequestSpans, type SpanMaker } from "./spans/request-spans.js";
import type { TextGenerators } from "./spans/text-generator.js";

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
}

/** Name of the instrumentation in spans and metrics. */
const SCOPE = "@tritonjs/opentelemetry";

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
 * const triton = new Triton({ tracer: openTelemetry({ meters: true }) });
 * ```
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): RequestTracer {
  const { textGenerators: generators = {}, meters = false, propagator } = options;
  const provider = options.tracerProvider ?? trace.getTracerProvider();
  const tracer = provider.getTracer(SCOPE);
  const endMeters =
    meters === false
      ? undefined
      : meterRequests((meters === true ? metrics.getMeterProvider() : meters).getMeter(SCOPE), generators);
  const extract = (arrival: RequestArrival): Context =>
    (propagator ?? propagation).extract(context.active(), arrival, headersOf);
  return {
    start({ modelName, selected, arrival, now, wallOffsetMs }: RequestOrigin): RequestSpans | undefined {
      const maker: SpanMaker = { tracer, generators, now, wallOffsetMs };
      const active = context.active();
      const isInner = trace.getSpanContext(active) !== undefined;
      const parent = isInner || arrival === undefined ? active : extract(arrival);
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
    },
    async close() {
      endMeters?.();
    },
  };
}
