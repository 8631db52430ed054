import { TritonError } from "@tritonjs/protocol";
import type { GeneratorUsage, LoadWindow, RequestRecords } from "../load/request-records.js";
import { Distribution } from "./distribution.js";

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
  emptyCount = 0;
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

  get cpuMsPerRequest(): number {
    const all = this.requestCount + this.failureCount;
    return all === 0 ? 0 : this.#cpuMs / all;
  }

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

/**
 * Figures of streams of tokens, as AIPerf defines them. A response of a target that does not tell its tokens counts as
 * one token.
 */
export class TokenFigures {
  readonly distributions: Readonly<Record<TokenMetricName, Distribution>>;
  /** Tokens of all responses of successful requests. */
  outputTokens = 0;
  requestCount = 0;
  errorCount = 0;
  goodCount = 0;
  /** First send and last response, in milliseconds since the epoch. */
  #firstSent = Number.POSITIVE_INFINITY;
  #lastResponse = Number.NEGATIVE_INFINITY;

  constructor(readonly options: TokenOptions) {
    this.distributions = Object.fromEntries(
      TOKEN_METRIC_NAMES.map((name) => [name, new Distribution(TOKEN_METRICS[name].resolution)]),
    ) as Record<TokenMetricName, Distribution>;
  }

  /** Seconds from the first send to the last response. */
  get benchmarkDuration(): number {
    return this.requestCount === 0 ? 0 : (this.#lastResponse - this.#firstSent) / 1000;
  }

  get outputTokenThroughput(): number {
    return this.#perSecond(this.outputTokens);
  }

  get requestThroughput(): number {
    return this.#perSecond(this.requestCount);
  }

  get goodput(): number {
    return this.#perSecond(this.goodCount);
  }

  addRequest(records: RequestRecords, i: number): void {
    if (records.failure[i] !== 0) {
      this.errorCount++;
      return;
    }
    const sent = records.sent[i]!;
    const end = records.end[i]!;
    this.requestCount++;
    this.#firstSent = Math.min(this.#firstSent, sent);
    this.#lastResponse = Math.max(this.#lastResponse, end);
    const values = this.#valuesOf(records, i);
    for (const name of TOKEN_METRIC_NAMES) {
      const value = values[name];
      if (value !== undefined) this.distributions[name].record(value);
    }
    this.outputTokens += values.output_sequence_length ?? 0;
    if (meetsGoals(values, this.options.goals)) this.goodCount++;
  }

  add(other: TokenFigures): void {
    for (const name of TOKEN_METRIC_NAMES) this.distributions[name].add(other.distributions[name]);
    this.outputTokens += other.outputTokens;
    this.requestCount += other.requestCount;
    this.errorCount += other.errorCount;
    this.goodCount += other.goodCount;
    this.#firstSent = Math.min(this.#firstSent, other.#firstSent);
    this.#lastResponse = Math.max(this.#lastResponse, other.#lastResponse);
  }

  #valuesOf(records: RequestRecords, i: number): RequestValues {
    const { kept } = records;
    const sent = records.sent[i]!;
    const values: RequestValues = { request_latency: records.end[i]! - sent };
    const from = kept?.offsets[i] ?? 0;
    const to = kept?.offsets[i + 1] ?? 0;
    let tokens = kept === undefined ? records.responses[i]! : to - from;
    if (kept?.tokens !== undefined) {
      tokens = 0;
      for (let j = from; j < to; j++) tokens += kept.tokens[j]!;
    }
    values.output_sequence_length = tokens;
    // A server that does not tell the tokens of its input tells 0.
    const inputTokens = kept?.inputTokens?.[i] ?? 0;
    if (inputTokens > 0) values.input_sequence_length = inputTokens;
    const first = records.firstResponse[i]!;
    if (!this.options.streaming || Number.isNaN(first)) return values;
    const firstAt = kept !== undefined && to > from ? kept.times[from]! : first;
    values.time_to_first_token = firstAt - sent;
    if (tokens >= 2) {
      const between = (records.end[i]! - sent - values.time_to_first_token) / (tokens - 1);
      values.inter_token_latency = between;
      if (between > 0) values.output_token_throughput_per_user = 1000 / between;
    }
    if (kept === undefined) return values;
    if (to - from >= 2) values.time_to_second_token = kept.times[from + 1]! - kept.times[from]!;
    for (let j = from + 1; j < to; j++) {
      const gap = kept.times[j]! - kept.times[j - 1]!;
      if (gap > 0) this.distributions.inter_chunk_latency.record(gap);
    }
    return values;
  }

  #perSecond(count: number): number {
    const seconds = this.benchmarkDuration;
    return seconds > 0 ? count / seconds : 0;
  }
}

interface TokenMetric {
  readonly title: string;
  readonly unit: string;
  /** Smallest difference that percentiles show, in the unit. */
  readonly resolution: number;
  /** Larger is better, so that a goal is a lower bound. */
  readonly largerIsBetter?: true;
}

/** Figures with a distribution over requests, by their JSON keys. */
export const TOKEN_METRICS = {
  time_to_first_token: { title: "Time To First Token", unit: "ms", resolution: 1e-6 },
  time_to_second_token: { title: "Time To Second Token", unit: "ms", resolution: 1e-6 },
  request_latency: { title: "Request Latency", unit: "ms", resolution: 1e-6 },
  inter_token_latency: { title: "Inter Token Latency", unit: "ms", resolution: 1e-6 },
  inter_chunk_latency: { title: "Inter Chunk Latency", unit: "ms", resolution: 1e-6 },
  output_token_throughput_per_user: {
    title: "Output Token Throughput Per User",
    unit: "tokens/sec/user",
    resolution: 1e-3,
    largerIsBetter: true,
  },
  output_sequence_length: {
    title: "Output Sequence Length",
    unit: "tokens",
    resolution: 1,
    largerIsBetter: true,
  },
  input_sequence_length: { title: "Input Sequence Length", unit: "tokens", resolution: 1 },
} as const satisfies Readonly<Record<string, TokenMetric>>;

type TokenMetricName = keyof typeof TOKEN_METRICS;

export const TOKEN_METRIC_NAMES = Object.keys(TOKEN_METRICS) as TokenMetricName[];

export interface TokenOptions {
  /** Responses arrive one by one, so that there is a first one to wait for. */
  readonly streaming: boolean;
  /** Limits that a request must meet to count into the goodput. */
  readonly goals: readonly Goal[];
}

export interface Goal {
  readonly metric: TokenMetricName;
  readonly value: number;
}

/** Values of one request. An absent one could not be measured, for instance the time to the second of one response. */
type RequestValues = Partial<Record<TokenMetricName, number>>;

/** Figures that a request has one value of. */
const OF_REQUESTS = TOKEN_METRIC_NAMES.filter((name) => name !== "inter_chunk_latency");

/** Reads goals of the form `time_to_first_token:100 inter_token_latency:20`. */
export function readGoals(text: string): Goal[] {
  return text
    .split(/[\s,]+/)
    .filter((part) => part !== "")
    .map((part) => {
      const [name = "", value = ""] = part.split(":");
      const metric = OF_REQUESTS.find((known) => known === name);
      if (metric === undefined) {
        throw new TritonError(
          "INVALID_ARG",
          `goodput: expected one of ${OF_REQUESTS.join(", ")} before the colon, got '${name}'`,
        );
      }
      const limit = Number(value);
      if (value === "" || !Number.isFinite(limit)) {
        throw new TritonError("INVALID_ARG", `goodput: expected a number for ${name}, got '${value}'`);
      }
      return { metric, value: limit };
    });
}

function meetsGoals(values: RequestValues, goals: readonly Goal[]): boolean {
  return goals.every(({ metric, value }) => {
    const measured = values[metric];
    if (measured === undefined) return false;
    const { largerIsBetter }: TokenMetric = TOKEN_METRICS[metric];
    return largerIsBetter ? measured >= value : measured <= value;
  });
}
