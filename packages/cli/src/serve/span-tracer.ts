import type { ReadableSpan, SpanExporter, SpanProcessor } from "@opentelemetry/sdk-trace";
import type { Extension } from "@tritonjs/core/extension";
import { errorFor, type TritonError } from "@tritonjs/protocol";

/** Where and in which amounts spans are sent to a collector. */
export interface SpanSettings {
  /** URL of the collector; without a scheme it is HTTP. @default that of OpenTelemetry's environment, or this machine */
  readonly url?: string;
  /** Attributes of the service. */
  readonly resource: Readonly<Record<string, string>>;
  /** Largest number of spans that wait to be sent. Further ones are lost. @default 2048 */
  readonly maxQueueSize?: number;
  /** Longest time that a span waits for others, in milliseconds. @default 5000 */
  readonly scheduleDelayMs?: number;
  /** Largest number of spans in one message. @default 512 */
  readonly maxExportBatchSize?: number;
}

/** Exporters by the protocol that OpenTelemetry's environment names. JSON over HTTP is tritonserver's. */
const EXPORTERS = {
  "http/json": {
    name: "@opentelemetry/exporter-trace-otlp-http",
    load: () => import("@opentelemetry/exporter-trace-otlp-http"),
  },
  "http/protobuf": {
    name: "@opentelemetry/exporter-trace-otlp-proto",
    load: () => import("@opentelemetry/exporter-trace-otlp-proto"),
  },
  grpc: {
    name: "@opentelemetry/exporter-trace-otlp-grpc",
    load: () => import("@opentelemetry/exporter-trace-otlp-grpc"),
  },
} as const;

/** Packages of the mode opentelemetry, which the command does not depend on, beside the exporter. */
const PACKAGES = [
  "@opentelemetry/api",
  "@opentelemetry/core",
  "@opentelemetry/resources",
  "@opentelemetry/sdk-trace",
];

/**
 * Loads OpenTelemetry's SDK and makes an extension that sends spans to a collector. Headers, time-out, compression,
 * certificate and protocol come from the environment, by OpenTelemetry's names: `OTEL_EXPORTER_OTLP_HEADERS` and so on.
 *
 * @param onFailure called for each message that the collector did not accept, and for spans that are lost
 * @throws TritonError UNSUPPORTED that names the packages to install, INVALID_ARG for an invalid setting.
 */
export async function loadSpanTracer(
  settings: SpanSettings,
  onFailure: (message: string) => void,
): Promise<Extension> {
  for (const name of ["maxQueueSize", "scheduleDelayMs", "maxExportBatchSize"] as const) {
    const value = settings[name] ?? 0;
    if (!Number.isInteger(value) || value < 0) throw invalid(name, "an integer of at least 0", value);
  }
  const url = settings.url === undefined ? undefined : collectorUrl(settings.url);
  const { api, sdk, resources, exporter } = await loadPackages();
  const spans = new SpanQueue(sdk.BatchSpanProcessor, exporter.OTLPTraceExporter, url, settings, onFailure);
  const provider = new sdk.TracerProvider({
    resource: resources.resourceFromAttributes({
      "service.name": "triton-inference-server",
      ...settings.resource,
    }),
    // The trace settings of the server decide which requests are traced.
    sampler: new sdk.AlwaysOnSampler(),
    spanProcessors: [spans],
  });
  const { name, attach } = api.openTelemetry({
    tracerProvider: provider,
    propagator: new api.W3CTraceContextPropagator(),
    lostSpans: () => spans.lost,
  });
  return {
    name,
    attach(server) {
      const parts = attach(server);
      return {
        ...parts,
        async close() {
          await parts.close?.();
          await provider.shutdown();
        },
      };
    },
  };
}

async function loadPackages() {
  const { env } = process;
  const protocol = env.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL || env.OTEL_EXPORTER_OTLP_PROTOCOL || "http/json";
  if (!Object.hasOwn(EXPORTERS, protocol)) {
    throw invalid("protocol", `one of ${Object.keys(EXPORTERS).join(", ")}`, protocol);
  }
  const { name, load } = EXPORTERS[protocol as keyof typeof EXPORTERS];
  try {
    const [{ openTelemetry }, { W3CTraceContextPropagator }, resources, sdk, exporter] = await Promise.all([
      import("@tritonjs/operations/opentelemetry"),
      import("@opentelemetry/core"),
      import("@opentelemetry/resources"),
      import("@opentelemetry/sdk-trace"),
      load(),
    ]);
    return { api: { openTelemetry, W3CTraceContextPropagator }, resources, sdk, exporter };
  } catch (cause) {
    throw errorFor(
      "PACKAGE_NOT_INSTALLED",
      `trace mode opentelemetry: a package is missing; install it beside @tritonjs/cli: npm install ${[...PACKAGES, name].join(" ")}`,
      { cause },
    );
  }
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

/** Shortest time between two reports of lost spans. */
const REPORT_MS = 10_000;

/** OpenTelemetry's batches of spans. It also counts and reports the spans that are lost. */
class SpanQueue implements SpanProcessor {
  /** Spans that were not sent because the queue was full, or that the collector did not accept. */
  lost = 0;
  readonly #maxQueueSize: number;
  readonly #batches: SpanProcessor;
  readonly #exporter: SpanExporter;
  #waiting = 0;
  #unreported = 0;
  #reportedMs = Number.NEGATIVE_INFINITY;

  constructor(
    Batches: typeof import("@opentelemetry/sdk-trace").BatchSpanProcessor,
    Exporter: typeof import("@opentelemetry/exporter-trace-otlp-http")["OTLPTraceExporter"],
    private readonly url: string | undefined,
    { maxQueueSize = 2048, maxExportBatchSize = 512, scheduleDelayMs = 5000 }: SpanSettings,
    private readonly onFailure: (message: string) => void,
  ) {
    this.#maxQueueSize = maxQueueSize;
    this.#exporter = new Exporter({
      ...(url !== undefined && { url }),
      // The last messages are sent together when the server closes.
      concurrencyLimit: maxQueueSize + 1,
    });
    this.#batches = new Batches({
      exporter: {
        export: (spans, done) => this.#export(spans, done),
        shutdown: () => this.#exporter.shutdown(),
      },
      maxQueueSize,
      maxExportBatchSize: Math.max(1, Math.min(maxExportBatchSize, maxQueueSize)),
      scheduledDelayMillis: scheduleDelayMs,
    });
  }

  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    if (this.#waiting >= this.#maxQueueSize) {
      this.lost++;
      this.#unreported++;
      return;
    }
    this.#waiting++;
    this.#batches.onEnd(span);
  }

  forceFlush(): Promise<void> {
    return this.#batches.forceFlush();
  }

  async shutdown(): Promise<void> {
    await this.#batches.shutdown();
    this.#report();
  }

  #export(spans: ReadableSpan[], done: Parameters<SpanExporter["export"]>[1]): void {
    this.#waiting -= spans.length;
    this.#exporter.export(spans, ({ error }) => {
      if (error !== undefined) {
        this.lost += spans.length;
        const { code, message } = error as Error & { code?: number | string };
        const status = typeof code === "number" ? `${code} ` : "";
        this.onFailure(`failed to export ${spans.length} spans to ${this.#collector}: ${status}${message}`);
      }
      if (performance.now() - this.#reportedMs >= REPORT_MS) this.#report();
      // Failures are reported above: OpenTelemetry would report them once more.
      done({ code: 0 });
    });
  }

  #report(): void {
    if (this.#unreported === 0) return;
    this.#reportedMs = performance.now();
    this.onFailure(
      `${this.#unreported} spans were lost: ${this.#maxQueueSize} others waited for the collector ${this.#collector}; ` +
        "trace fewer requests (trace_rate), or raise maxQueueSize (bsp_max_queue_size)",
    );
    this.#unreported = 0;
  }

  get #collector(): string {
    return this.url === undefined ? "of the environment" : `'${this.url}'`;
  }
}
