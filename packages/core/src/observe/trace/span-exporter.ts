import { statusText } from "@tritonjs/protocol";
import type { Clock, Timer } from "../../clock/clock.js";
import type { Log } from "../log/log.js";
import { type Span, textValue } from "./trace-spans.js";

/** Where and in which amounts spans are sent: settings of `--trace-config opentelemetry,<setting>=<value>`. */
export interface OpenTelemetryOptions {
  /**
   * URL of a collector that accepts OTLP over HTTP; `http://` may be left out. @default
   * "http://localhost:4318/v1/traces"
   */
  readonly url?: string;
  /** Attributes of the service. @default { "service.name": "triton-inference-server" } */
  readonly resource?: Readonly<Record<string, string>>;
  /** Largest number of spans that wait to be sent. Further ones are lost. @default 2048 */
  readonly maxQueueSize?: number;
  /** Longest time that a span waits for others, in milliseconds. @default 5000 */
  readonly scheduleDelayMs?: number;
  /** Largest number of spans in one message. @default 512 */
  readonly maxExportBatchSize?: number;
}

export const DEFAULT_OPEN_TELEMETRY: Required<OpenTelemetryOptions> = {
  url: "http://localhost:4318/v1/traces",
  resource: {},
  maxQueueSize: 2048,
  scheduleDelayMs: 5000,
  maxExportBatchSize: 512,
};

/** Time limit for the answer of a collector, in milliseconds. */
const TIMEOUT_MS = 10_000;

/** Completes the URL of a collector. Without a scheme it is `http`, as for the C++ exporter of OpenTelemetry. */
export function collectorUrl(url: string): string {
  return url.includes("://") ? url : `http://${url}`;
}

/** Sends spans to a collector, one message at a time. If the collector cannot be reached, a line is logged. */
export class SpanExporter {
  readonly #options: Required<OpenTelemetryOptions>;
  readonly #url: string;
  readonly #resource: object;
  #waiting: Span[] = [];
  #lost = 0;
  #timer: Timer | undefined;
  #sending: Promise<void> | undefined;

  constructor(
    options: Required<OpenTelemetryOptions>,
    private readonly clock: Clock,
    private readonly log: Pick<Log, "error">,
  ) {
    this.#options = options;
    this.#url = collectorUrl(options.url);
    const attributes = { "service.name": "triton-inference-server", ...options.resource };
    this.#resource = { attributes: Object.entries(attributes).map(([key, value]) => textValue(key, value)) };
  }

  add(spans: readonly Span[]): void {
    const { maxQueueSize, maxExportBatchSize, scheduleDelayMs } = this.#options;
    const taken = spans.slice(0, Math.max(0, maxQueueSize - this.#waiting.length));
    this.#lost += spans.length - taken.length;
    this.#waiting.push(...taken);
    if (this.#waiting.length >= maxExportBatchSize) void this.#flush();
    else if (this.#waiting.length > 0) {
      this.#timer ??= this.clock.setTimer(scheduleDelayMs, () => void this.#flush());
    }
  }

  /** Sends the waiting spans. Resolves when they are sent. */
  async close(): Promise<void> {
    await this.#flush();
  }

  #flush(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined;
    });
    return this.#sending;
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const spans = this.#waiting.splice(0, this.#options.maxExportBatchSize);
      try {
        await this.#send(spans);
      } catch (error) {
        this.log.error(`failed to export ${spans.length} spans to '${this.#url}': ${statusText(error)}`);
      }
      if (this.#lost > 0)
        this.log.error(
          `${this.#lost} spans were lost: the collector takes them more slowly than they are made`,
        );
      this.#lost = 0;
    }
  }

  async #send(spans: readonly Span[]): Promise<void> {
    const scopeSpans = [{ scope: { name: "triton-server" }, spans }];
    const response = await fetch(this.#url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ resourceSpans: [{ resource: this.#resource, scopeSpans }] }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    await response.arrayBuffer();
    if (!response.ok) throw new Error(`the collector sent HTTP status ${response.status}`);
  }
}
