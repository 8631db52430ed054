import { errorFor, type TritonError } from "@tritonjs/protocol";
import type { RequestTracer } from "../observe/request-trace.js";
import { type OpenTelemetryOptions, openTelemetry } from "./index.js";
import { attributesJson, OtlpTracer, traceContext } from "./otlp-spans.js";
import { SpanQueue } from "./span-queue.js";

/** Options of `otlp`: where and in which amounts spans are sent. */
export interface OtlpOptions extends Pick<OpenTelemetryOptions, "textGenerators" | "meters"> {
  /** URL of a collector that accepts OTLP over HTTP. @default "http://localhost:4318/v1/traces" */
  readonly url?: string;
  /** Attributes of the service. @default { "service.name": "triton-inference-server" } */
  readonly resource?: Readonly<Record<string, string>>;
  /** Largest number of spans that wait to be sent. Further ones are lost: `onFailure` says how many. @default 2048 */
  readonly maxQueueSize?: number;
  /** Longest time that a span waits for others, in milliseconds. @default 5000 */
  readonly scheduleDelayMs?: number;
  /** Largest number of spans in one message. @default 512 */
  readonly maxExportBatchSize?: number;
  /** Called for each message that the collector did not accept, and for spans that are lost. @default ignored */
  readonly onFailure?: (message: string) => void;
}

const DEFAULT_OTLP_OPTIONS = {
  url: "http://localhost:4318/v1/traces",
  maxQueueSize: 2048,
  scheduleDelayMs: 5000,
  maxExportBatchSize: 512,
} as const;

/**
 * Makes a tracer that sends spans to a collector, for a program that has no OpenTelemetry of its own. Spans are JSON of
 * OTLP over HTTP. Headers, time-out, compression and certificate come from the environment, by OpenTelemetry's names:
 * `OTEL_EXPORTER_OTLP_HEADERS` and so on.
 *
 * @throws TritonError INVALID_ARG for an invalid option.
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
  const resource = { "service.name": "triton-inference-server", ...options.resource };
  const queue = new SpanQueue({
    url: collectorUrl(url),
    maxQueueSize,
    scheduleDelayMs,
    maxExportBatchSize: Math.min(maxExportBatchSize, maxQueueSize),
    before:
      `{"resourceSpans":[{"resource":{${attributesJson(resource).slice(1)}},` +
      `"scopeSpans":[{"scope":{"name":"@tritonjs/core/opentelemetry"},"spans":[`,
    after: "]}]}]}",
    onFailure: options.onFailure ?? (() => {}),
  });
  const spans = new OtlpTracer((json) => queue.add(json));
  const tracer = openTelemetry({
    ...options,
    tracerProvider: { getTracer: () => spans },
    propagator: traceContext,
  });
  return {
    start: (origin) => tracer.start(origin),
    get lostSpans() {
      return queue.lost;
    },
    async close() {
      await tracer.close?.();
      await queue.close();
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
