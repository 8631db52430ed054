import type { SpanExporter } from "@opentelemetry/sdk-trace";
import { errorFor, TritonError } from "@tritonjs/protocol";
import type { RequestTracer } from "../observe/request-trace.js";
import { type OpenTelemetryOptions, openTelemetry } from "./index.js";

/** Options of `otlp`: where and in which amounts spans are sent. */
export interface OtlpOptions extends Pick<OpenTelemetryOptions, "textGenerators" | "meters"> {
  /** URL of a collector that accepts OTLP over HTTP. @default "http://localhost:4318/v1/traces" */
  readonly url?: string;
  /** Attributes of the service. @default { "service.name": "triton-inference-server" } */
  readonly resource?: Readonly<Record<string, string>>;
  /** Largest number of spans that wait to be sent. Further ones are lost. @default 2048 */
  readonly maxQueueSize?: number;
  /** Longest time that a span waits for others, in milliseconds. @default 5000 */
  readonly scheduleDelayMs?: number;
  /** Largest number of spans in one message. @default 512 */
  readonly maxExportBatchSize?: number;
  /** Called for each message that the collector did not accept. @default ignored */
  readonly onFailure?: (message: string) => void;
}

const DEFAULT_OTLP_OPTIONS = {
  url: "http://localhost:4318/v1/traces",
  maxQueueSize: 2048,
  scheduleDelayMs: 5000,
  maxExportBatchSize: 512,
} as const;

/** Packages of the SDK that only this exporter needs. */
const SDK = [
  "@opentelemetry/api",
  "@opentelemetry/core",
  "@opentelemetry/exporter-trace-otlp-http",
  "@opentelemetry/resources",
  "@opentelemetry/sdk-trace",
] as const;

/**
 * Makes a tracer that sends spans to a collector with OpenTelemetry's SDK, for a program that has no OpenTelemetry of
 * its own.
 *
 * @throws TritonError UNSUPPORTED that names the packages to install, INVALID_ARG for an invalid option.
 * @example
 * ```ts
 * const triton = new Triton({ tracer: await otlp({ resource: { "service.name": "vision" } }) });
 * ```
 */
export async function otlp(options: OtlpOptions = {}): Promise<RequestTracer> {
  const { url, maxQueueSize, scheduleDelayMs, maxExportBatchSize } = { ...DEFAULT_OTLP_OPTIONS, ...options };
  for (const [name, value] of Object.entries({ maxQueueSize, scheduleDelayMs, maxExportBatchSize })) {
    if (!Number.isInteger(value) || value < 0) throw invalid(name, "an integer of at least 0", value);
  }
  const collector = collectorUrl(url);
  const [sdk, { OTLPTraceExporter }, { resourceFromAttributes }, { W3CTraceContextPropagator }] =
    await loadSdk();
  const exporter = new OTLPTraceExporter({ url: collector });
  const { onFailure } = options;
  const reporting: SpanExporter = {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        if (result.error !== undefined)
          onFailure?.(`failed to export ${spans.length} spans to '${collector}': ${result.error.message}`);
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
    forceFlush: () => exporter.forceFlush(),
  };
  const attributes = { "service.name": "triton-inference-server", ...options.resource };
  const provider = new sdk.TracerProvider({
    resource: resourceFromAttributes(attributes),
    // Which requests are traced, the trace settings of the server decide.
    sampler: new sdk.AlwaysOnSampler(),
    spanProcessors: [
      new sdk.BatchSpanProcessor({
        exporter: reporting,
        maxQueueSize,
        scheduledDelayMillis: scheduleDelayMs,
        maxExportBatchSize: Math.min(maxExportBatchSize, maxQueueSize),
      }),
    ],
  });
  const tracer = openTelemetry({
    ...options,
    tracerProvider: provider,
    propagator: new W3CTraceContextPropagator(),
  });
  return {
    start: (origin) => tracer.start(origin),
    async close() {
      await tracer.close?.();
      // A rejection is about the last message, which `onFailure` was called for.
      await provider.shutdown().catch(() => {});
    },
  };
}

/** Completes the URL of a collector. Without a scheme it is `http`, as for the C++ exporter of OpenTelemetry. */
function collectorUrl(url: string): string {
  const whole = url.includes("://") ? url : `http://${url}`;
  if (!URL.canParse(whole)) throw invalid("url", "a URL", url);
  return whole;
}

function invalid(name: string, expected: string, got: unknown): TritonError {
  return errorFor("INVALID_OPTION", `otlp.${name}: expected ${expected}, got ${String(got)}`);
}

async function loadSdk() {
  try {
    return await Promise.all([
      import("@opentelemetry/sdk-trace"),
      import("@opentelemetry/exporter-trace-otlp-http"),
      import("@opentelemetry/resources"),
      import("@opentelemetry/core"),
    ]);
  } catch (cause) {
    throw new TritonError(
      "UNSUPPORTED",
      `cannot export spans: a package of OpenTelemetry is missing; install ${SDK.join(" ")}`,
      { cause },
    );
  }
}
