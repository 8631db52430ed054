import type { GeneratorUsage, LoadWindow } from "../load/request-records.js";
import { Distribution } from "./distribution.js";
import { TokenFigures, type TokenOptions } from "./token-figures.js";

export interface FigureOptions {
  readonly batchSize: number;
  /** Figures of single responses, for streams of tokens. */
  readonly tokens?: TokenOptions;
}

/** Figures of the requests that ended in one window or in several windows that follow each other. Times are milliseconds. */
export class RequestFigures {
  readonly batchSize: number;
  /** Milliseconds since the epoch. */
  start = Number.POSITIVE_INFINITY;
  end = Number.NEGATIVE_INFINITY;
  /** Length of all windows together. */
  durationMs = 0;
  /** Latency from the scheduled send to the last response, of successful requests. */
  readonly latency = new Distribution();
  /** Latency from the actual send, of the same requests. Equal to `latency` without a schedule. */
  readonly fromSend = new Distribution();
  /** Failed requests, by the text of the error. */
  readonly failures = new Map<string, number>();
  /** Successful requests without any response that had outputs. */
  emptyCount = 0;
  /** Responses with outputs, of successful requests. */
  responseCount = 0;
  /** Sequences of which a request ended here and none in the window before. */
  sequenceCount = 0;
  /** Sums over the successful requests with a response. */
  sendMs = 0;
  waitMs = 0;
  receiveMs = 0;
  readonly tokens: TokenFigures | undefined;
  readonly #usages: { readonly usage: GeneratorUsage; readonly durationMs: number }[] = [];

  constructor(options: FigureOptions) {
    this.batchSize = options.batchSize;
    this.tokens = options.tokens === undefined ? undefined : new TokenFigures(options.tokens);
  }

  get requestCount(): number {
    return this.latency.count;
  }

  get failureCount(): number {
    let count = 0;
    for (const one of this.failures.values()) count += one;
    return count;
  }

  /** Inferences a second: requests times the batch size. */
  get throughput(): number {
    return this.#perSecond(this.requestCount * this.batchSize);
  }

  get requestThroughput(): number {
    return this.#perSecond(this.requestCount);
  }

  get responseThroughput(): number {
    return this.#perSecond(this.responseCount);
  }

  get sequenceThroughput(): number {
    return this.#perSecond(this.sequenceCount);
  }

  /** Failed requests as a share of all, 0 to 1. */
  get failureShare(): number {
    const all = this.requestCount + this.failureCount;
    return all === 0 ? 0 : this.failureCount / all;
  }

  /** Mean time for which requests were handed to the connection, waited for, and received. */
  get meanSendMs(): number {
    return this.#mean(this.sendMs);
  }

  get meanWaitMs(): number {
    return this.#mean(this.waitMs);
  }

  get meanReceiveMs(): number {
    return this.#mean(this.receiveMs);
  }

  /** Highest utilisation of an event loop of the generator, 0 to 1. */
  get eventLoopUtilization(): number {
    return Math.max(0, ...this.#usages.map(({ usage }) => usage.eventLoopUtilization));
  }

  /** CPU time of the busiest thread of the generator as a share of all windows, 0 to 1. */
  get cpuUtilization(): number {
    let sum = 0;
    for (const { usage, durationMs } of this.#usages) sum += usage.cpuUtilization * durationMs;
    return this.durationMs === 0 ? 0 : sum / this.durationMs;
  }

  /** Cores that all threads of the generator kept busy on average. */
  get cpuCores(): number {
    return this.durationMs === 0 ? 0 : this.#cpuMs / this.durationMs;
  }

  /** Share of time in which requests waited for a thread of the generator, 0 to 1. */
  get overhead(): number {
    let sum = 0;
    for (const { usage, durationMs } of this.#usages) sum += (1 - usage.idle) * durationMs;
    return this.durationMs === 0 ? 0 : Math.min(1, Math.max(0, sum / this.durationMs));
  }

  /** Requests that were sent more than 1 ms late, as a share of all, 0 to 1. */
  get delayedShare(): number {
    const delayed = this.#usages.reduce((sum, { usage }) => sum + usage.delayed, 0);
    const all = this.requestCount + this.failureCount;
    return all === 0 ? 0 : Math.min(1, delayed / all);
  }

  /** CPU time of the generator for each request, in milliseconds. */
  get cpuMsPerRequest(): number {
    const all = this.requestCount + this.failureCount;
    return all === 0 ? 0 : this.#cpuMs / all;
  }

  /** Latency at a percentile, or the mean one, in milliseconds. */
  latencyAt(percentile?: number): number {
    return percentile === undefined ? this.latency.mean : this.latency.percentile(percentile);
  }

  /** Adds the requests of a window. `begun` holds the sequences of the window before, and then those of this one. */
  addWindow(window: LoadWindow, begun: Set<number> = new Set()): void {
    const { records } = window;
    const durationMs = window.end - window.start;
    this.start = Math.min(this.start, window.start);
    this.end = Math.max(this.end, window.end);
    this.durationMs += durationMs;
    this.#usages.push({ usage: window.usage, durationMs });
    const sequences = new Set<number>();
    for (let i = 0; i < records.count; i++) {
      const sequence = records.sequence[i]!;
      if (sequence !== 0) sequences.add(sequence);
      this.#addRequest(window, i);
    }
    for (const sequence of sequences) if (!begun.has(sequence)) this.sequenceCount++;
    begun.clear();
    for (const sequence of sequences) begun.add(sequence);
  }

  add(other: RequestFigures): void {
    this.start = Math.min(this.start, other.start);
    this.end = Math.max(this.end, other.end);
    this.durationMs += other.durationMs;
    this.latency.add(other.latency);
    this.fromSend.add(other.fromSend);
    for (const [text, count] of other.failures)
      this.failures.set(text, (this.failures.get(text) ?? 0) + count);
    this.emptyCount += other.emptyCount;
    this.responseCount += other.responseCount;
    this.sequenceCount += other.sequenceCount;
    this.sendMs += other.sendMs;
    this.waitMs += other.waitMs;
    this.receiveMs += other.receiveMs;
    this.#usages.push(...other.#usages);
    if (this.tokens !== undefined && other.tokens !== undefined) this.tokens.add(other.tokens);
  }

  #addRequest({ records }: LoadWindow, i: number): void {
    const failure = records.failure[i]!;
    this.tokens?.addRequest(records, i);
    if (failure !== 0) {
      const text = records.errors[failure - 1] ?? "unknown error";
      this.failures.set(text, (this.failures.get(text) ?? 0) + 1);
      return;
    }
    const sent = records.sent[i]!;
    const sendEnd = records.sendEnd[i]!;
    const first = records.firstResponse[i]!;
    const end = records.end[i]!;
    this.latency.record(end - records.scheduled[i]!);
    this.fromSend.record(end - sent);
    this.responseCount += records.responses[i]!;
    if (Number.isNaN(first)) {
      this.emptyCount++;
      return;
    }
    this.sendMs += sendEnd - sent;
    this.waitMs += first - sendEnd;
    this.receiveMs += end - first;
  }

  get #cpuMs(): number {
    return this.#usages.reduce((sum, { usage }) => sum + usage.cpuMs, 0);
  }

  #perSecond(count: number): number {
    return this.durationMs === 0 ? 0 : (count * 1000) / this.durationMs;
  }

  #mean(sum: number): number {
    const count = this.requestCount - this.emptyCount;
    return count === 0 ? 0 : sum / count;
  }
}

export function mergeFigures(windows: readonly RequestFigures[], options: FigureOptions): RequestFigures {
  const merged = new RequestFigures(options);
  for (const window of windows) merged.add(window);
  return merged;
}

/** Number of windows that must agree. */
export const STABLE_WINDOWS = 3;

/** The figure that differs too much between the last windows. */
export type Instability = "throughput" | "latency" | "throughput and latency" | "too few windows";

/** When a level counts as stable. */
export interface StabilityRules {
  /** Percentage by which the largest value may exceed the smallest one. */
  readonly percentage: number;
  /** Percentile of the latency that is compared; the mean unless given. */
  readonly percentile?: number;
}

/**
 * Compares the last three windows: the largest throughput and latency may exceed the smallest ones by the percentage.
 * Undefined when they are stable.
 */
export function instabilityOf(
  windows: readonly RequestFigures[],
  { percentage, percentile }: StabilityRules,
): Instability | undefined {
  if (windows.length < STABLE_WINDOWS) return "too few windows";
  const last = windows.slice(-STABLE_WINDOWS);
  const ratio = 1 + percentage / 100;
  const throughput = spread(last.map((window) => window.throughput)) <= ratio;
  const latency = spread(last.map((window) => window.latencyAt(percentile))) <= ratio;
  if (throughput) return latency ? undefined : "latency";
  return latency ? "throughput" : "throughput and latency";
}

/** Largest value divided by the smallest one; infinite where there is none, or the smallest one is 0. */
function spread(values: readonly number[]): number {
  const low = Math.min(...values);
  const high = Math.max(...values);
  if (high === 0 && low === 0) return Number.POSITIVE_INFINITY;
  return low > 0 ? high / low : Number.POSITIVE_INFINITY;
}
