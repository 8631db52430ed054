import { TritonError } from "@tritonjs/protocol";
import {
  TOKEN_METRIC_NAMES,
  TOKEN_METRICS,
  type TokenMetric,
  type TokenMetricName,
} from "./token-metrics.js";

/** A limit on one figure of a request, in the unit of the figure. */
export interface Goal {
  readonly metric: TokenMetricName;
  readonly value: number;
}

/** Values of one request. An absent one could not be measured, for instance the time to the second of one response. */
export type RequestValues = Partial<Record<TokenMetricName, number>>;

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
export function meetsGoals(values: RequestValues, goals: readonly Goal[]): boolean {
  return goals.every(({ metric, value }) => {
    const measured = values[metric];
    if (measured === undefined) return false;
    const { largerIsBetter }: TokenMetric = TOKEN_METRICS[metric];
    return largerIsBetter ? measured >= value : measured <= value;
  });
}
