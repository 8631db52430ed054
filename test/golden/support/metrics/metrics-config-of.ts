import type { MetricsConfig } from "@tritonjs/core";

/** The metrics of the recorded server's flags: `--metrics-config=<setting>=<value>`. */
export function metricsConfigOf(flags: readonly string[]): MetricsConfig {
  const settings = new Map(
    flags.flatMap((flag) => {
      const match = /^--metrics-config=(\w+)=(.*)$/.exec(flag);
      return match === null ? [] : [[match[1], match[2]] as const];
    }),
  );
  return {
    counterLatencies: settings.get("counter_latencies") !== "false",
    histogramLatencies: settings.get("histogram_latencies") === "true",
    summaryLatencies: settings.get("summary_latencies") === "true",
    ...quantiles(settings.get("summary_quantiles")),
  };
}

/** Each is `<quantile>:<error>`. */
function quantiles(pairs: string | undefined): MetricsConfig {
  if (pairs === undefined) return {};
  return { summaryQuantiles: pairs.split(",").map((pair) => Number(pair.split(":")[0])) };
}
