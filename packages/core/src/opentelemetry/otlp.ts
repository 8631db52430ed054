import { readFileSync } from "node:fs";
import { Agent as HttpAgent, request as httpRequest } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { errorFor, type TritonError } from "@tritonjs/protocol";
import type { RequestTracer } from "../observe/request-trace.js";
import { type OpenTelemetryOptions, openTelemetry } from "./index.js";
import { attributesJson, OtlpTracer, traceContext } from "./otlp-spans.js";

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

interface QueueOptions {
  /** Address of the collector. */
  readonly url: string;
  readonly maxQueueSize: number;
  readonly scheduleDelayMs: number;
  readonly maxExportBatchSize: number;
  /** Text around the spans of a message. */
  readonly before: string;
  readonly after: string;
  readonly onFailure: (message: string) => void;
}

/** Messages on their way at the same time. With one, a collector some milliseconds away would be the bottleneck. */
const MOST_MESSAGES = 4;

/** Shortest time between two reports of lost spans. */
const REPORT_MS = 10_000;

/** Bytes of a piece of memory into which spans are written. */
const PIECE_BYTES = 128 * 1024;

/** Spans of one message, as bytes: texts would be copied by the garbage collector while they wait. */
class Message {
  count = 0;
  readonly pieces: Buffer[] = [];
  #piece = Buffer.alloc(0);
  #length = 0;

  add(span: string): void {
    // A character has at most three bytes in UTF-8. One more is for the comma.
    if (this.#length + 3 * span.length + 1 > this.#piece.length) {
      this.end();
      this.#piece = Buffer.allocUnsafeSlow(Math.max(PIECE_BYTES, 3 * span.length + 1));
      this.#length = 0;
    }
    if (this.count++ > 0) this.#length += this.#piece.write(",", this.#length);
    this.#length += this.#piece.write(span, this.#length);
  }

  /** Completes `pieces`. */
  end(): void {
    if (this.#length > 0) this.pieces.push(this.#piece.subarray(0, this.#length));
  }
}

/** Spans that wait to be sent to a collector. Spans are lost, and counted, while the queue is full. */
class SpanQueue {
  /** Spans that were not sent because the queue was full, or that the collector did not accept. */
  lost = 0;
  /** Full messages that wait, oldest first. */
  readonly #full: Message[] = [];
  #open = new Message();
  #waiting = 0;
  #unreported = 0;
  #reportedMs = Number.NEGATIVE_INFINITY;
  readonly #sending = new Set<Promise<void>>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;
  readonly #collector: Collector;

  constructor(private readonly options: QueueOptions) {
    this.#collector = new Collector(options.url);
  }

  add(span: string): void {
    const { maxQueueSize, maxExportBatchSize, scheduleDelayMs } = this.options;
    if (this.#waiting >= maxQueueSize || this.#isClosed) {
      this.lost++;
      this.#unreported++;
      return;
    }
    this.#waiting++;
    this.#open.add(span);
    if (this.#open.count >= maxExportBatchSize) {
      this.#seal();
      if (this.#sending.size < MOST_MESSAGES) this.#send();
    } else if (this.#timer === undefined) {
      this.#timer = setTimeout(() => {
        this.#timer = undefined;
        if (this.#sending.size >= MOST_MESSAGES) return;
        this.#seal();
        this.#send();
      }, scheduleDelayMs);
      this.#timer.unref();
    }
  }

  /** Sends the spans that wait. Resolves when all messages are answered. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#seal();
    while (this.#full.length > 0) this.#send();
    await Promise.all(this.#sending);
    this.#report();
    this.#collector.close();
  }

  #seal(): void {
    if (this.#open.count === 0) return;
    this.#open.end();
    this.#full.push(this.#open);
    this.#open = new Message();
  }

  #send(): void {
    const message = this.#full.shift();
    if (message === undefined) return;
    const { url, before, after, onFailure } = this.options;
    const { count, pieces } = message;
    this.#waiting -= count;
    const sent = this.#collector
      .post([Buffer.from(before), ...pieces, Buffer.from(after)])
      .catch((error: Error) => {
        this.lost += count;
        onFailure(`failed to export ${count} spans to '${url}': ${error.message}`);
      })
      .then(() => {
        this.#sending.delete(sent);
        if (performance.now() - this.#reportedMs >= REPORT_MS) this.#report();
        if (!this.#isClosed) this.#send();
      });
    this.#sending.add(sent);
  }

  #report(): void {
    if (this.#unreported === 0) return;
    const { url, maxQueueSize, onFailure } = this.options;
    this.#reportedMs = performance.now();
    onFailure(
      `${this.#unreported} spans were lost: ${maxQueueSize} others waited for the collector '${url}'; ` +
        "trace fewer requests (trace_rate), or raise maxQueueSize (bsp_max_queue_size)",
    );
    this.#unreported = 0;
  }
}

const TIMEOUT_MS = 10_000;
/** Statuses of a collector that will accept the message later. */
const RETRIED = new Set([429, 502, 503, 504]);
const ATTEMPTS = 5;
const FIRST_PAUSE_MS = 1_000;

/** Sends messages to a collector over HTTP, with the settings that OpenTelemetry reads from the environment. */
class Collector {
  readonly #agent: HttpAgent | HttpsAgent;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #timeoutMs: number;
  readonly #isZipped: boolean;
  readonly #isSecure: boolean;

  constructor(private readonly url: string) {
    this.#isSecure = url.startsWith("https:");
    const certificate = setting("CERTIFICATE");
    const ca = certificate === undefined ? {} : { ca: readFileSync(certificate) };
    this.#agent = this.#isSecure
      ? new HttpsAgent({ keepAlive: true, ...ca })
      : new HttpAgent({ keepAlive: true });
    this.#isZipped = setting("COMPRESSION") === "gzip";
    this.#timeoutMs = Number(setting("TIMEOUT") ?? TIMEOUT_MS) || TIMEOUT_MS;
    this.#headers = {
      ...readHeaders(process.env.OTEL_EXPORTER_OTLP_HEADERS),
      ...readHeaders(process.env.OTEL_EXPORTER_OTLP_TRACES_HEADERS),
      "content-type": "application/json",
      ...(this.#isZipped && { "content-encoding": "gzip" }),
    };
  }

  close(): void {
    this.#agent.destroy();
  }

  /** @throws Error for a message that the collector did not accept in time */
  async post(message: readonly Buffer[]): Promise<void> {
    const body = this.#isZipped ? [await promisify(gzip)(Buffer.concat(message))] : message;
    const end = performance.now() + this.#timeoutMs;
    let pauseMs = FIRST_PAUSE_MS;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#once(body, end - performance.now());
      } catch (error) {
        const { status } = error as { status?: number };
        const isFinal = status !== undefined && !RETRIED.has(status);
        if (isFinal || attempt === ATTEMPTS || performance.now() + pauseMs >= end) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, pauseMs * (0.8 + 0.4 * Math.random())));
      pauseMs *= 1.5;
    }
  }

  #once(body: readonly Buffer[], timeoutMs: number): Promise<void> {
    const send = this.#isSecure ? httpsRequest : httpRequest;
    return new Promise((resolve, reject) => {
      const length = body.reduce((sum, piece) => sum + piece.length, 0);
      const headers = { ...this.#headers, "content-length": length };
      const signal = AbortSignal.timeout(Math.max(1, Math.ceil(timeoutMs)));
      const call = send(this.url, { method: "POST", headers, agent: this.#agent, signal }, (answer) => {
        answer.resume();
        answer.on("error", reject);
        const { statusCode: status = 0, statusMessage } = answer;
        if (status >= 200 && status < 300) answer.on("end", resolve);
        else reject(Object.assign(new Error(`${status} ${statusMessage}`), { status }));
      });
      call.on("error", reject);
      call.cork();
      for (const piece of body) call.write(piece);
      call.end();
    });
  }
}

/** A setting of OpenTelemetry's environment: that for traces, or that for all signals. */
function setting(name: string): string | undefined {
  const { env } = process;
  return env[`OTEL_EXPORTER_OTLP_TRACES_${name}`] || env[`OTEL_EXPORTER_OTLP_${name}`] || undefined;
}

/** Reads `name=value,name=value`, with values in percent encoding. */
function readHeaders(text = ""): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const pair of text.split(",")) {
    const equals = pair.indexOf("=");
    if (equals <= 0) continue;
    const value = pair.slice(equals + 1).trim();
    try {
      headers[pair.slice(0, equals).trim()] = decodeURIComponent(value);
    } catch {
      headers[pair.slice(0, equals).trim()] = value;
    }
  }
  return headers;
}
