import type { RequestRecords } from "../../load/request-records.js";
import { Distribution } from "../distribution.js";
import { meetsGoals, type RequestValues } from "./goals.js";
import { TOKEN_METRIC_NAMES, TOKEN_METRICS, type TokenMetricName } from "./token-metrics.js";
import type { TokenOptions } from "./token-options.js";

/**
 * Figures of streams of tokens, as AIPerf defines them. A response of a target that does not tell its tokens counts as
 * one token.
 */
export class TokenFigures {
  readonly options: TokenOptions;
  readonly distributions: Readonly<Record<TokenMetricName, Distribution>>;
  /** Tokens of all responses of successful requests. */
  outputTokens = 0;
  /** Successful requests. */
  requestCount = 0;
  errorCount = 0;
  /** Requests that met all goals. */
  goodCount = 0;
  /** First send and last response, in milliseconds since the epoch. */
  #firstSent = Number.POSITIVE_INFINITY;
  #lastResponse = Number.NEGATIVE_INFINITY;

  constructor(options: TokenOptions) {
    this.options = options;
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

  /** Adds request `i` of the records. */
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

  /** Adds the figures of another window. */
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
