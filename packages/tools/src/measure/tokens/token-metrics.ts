/** A figure of single requests or responses, with the key and the unit that AIPerf gives it. */
export interface TokenMetric {
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

/** JSON key of a figure with a distribution. */
export type TokenMetricName = keyof typeof TOKEN_METRICS;

export const TOKEN_METRIC_NAMES = Object.keys(TOKEN_METRICS) as TokenMetricName[];
