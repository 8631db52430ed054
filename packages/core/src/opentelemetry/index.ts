import {
  type Attributes,
  type Context,
  context,
  type Meter,
  type MeterProvider,
  metrics,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  type TextMapPropagator,
  type TracerProvider,
  trace,
} from "@opentelemetry/api";
import {
  type DiagnosedRequest,
  type DiagnosticMessages,
  onDiagnostics,
  onExecution,
} from "../observe/diagnostics-channels.js";
import type { RequestArrival, RequestOrigin, RequestTracer } from "../observe/request-trace.js";
import {
  generatorAttributes,
  RequestSpans,
  type SpanMaker,
  type TextGenerators,
  tokenCounts,
} from "./request-spans.js";

export type { TextGenerator, TextGenerators } from "./request-spans.js";

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
const SCOPE = "@tritonjs/core/opentelemetry";

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
