import { TritonError } from "@tritonjs/protocol";
import type { RequestRecords } from "../load/request-records.js";
import { Distribution } from "./distribution.js";

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
  /** Requests that met all goals. */
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

  /** Output tokens a second of all users together. */
  get outputTokenThroughput(): number {
    return this.#perSecond(this.outputTokens);
  }

  get requestThroughput(): number {
    return this.#perSecond(this.requestCount);
  }

  /** Requests a second that met all goals. */
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

/** A figure of single requests or responses, with the key and the unit that AIPerf gives it. */
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

/** Options of the figures of single responses. */
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

/**
 * Reads goals of the form `time_to_first_token:100 inter_token_latency:20`.
 *
 * @throws TritonError INVALID_ARG for an unknown figure or a value that is not a number
 */
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

/** Whether a request meets all goals. A value that is missing meets none. */
function meetsGoals(values: RequestValues, goals: readonly Goal[]): boolean {
  return goals.every(({ metric, value }) => {
    const measured = values[metric];
    if (measured === undefined) return false;
    const { largerIsBetter }: TokenMetric = TOKEN_METRICS[metric];
    return largerIsBetter ? measured >= value : measured <= value;
  });
}
