import type { MetricsConfig } from "@tritonjs/core";
import type { NamedSetting } from "../options/read-setting.js";

/** The settings of `--metrics-config`. Unknown settings and invalid values are ignored, as by tritonserver. */
export function metricsSettings(settings: readonly NamedSetting[]): MetricsConfig {
  const config: { -readonly [Key in keyof MetricsConfig]: MetricsConfig[Key] } = {};
  for (const { key, value } of settings) {
    if (key === "counter_latencies") config.counterLatencies = value !== "false";
    if (key === "histogram_latencies") config.histogramLatencies = value === "true";
    if (key === "summary_latencies") config.summaryLatencies = value === "true";
    if (key === "summary_quantiles") {
      // Each pair is <quantile>:<error>. The error is the tolerance of a summary; ours are exact.
      const quantiles = value.split(",").map((pair) => Number(pair.split(":")[0]));
      config.summaryQuantiles = quantiles.filter((quantile) => quantile >= 0 && quantile <= 1);
    }
  }
  return config;
}

/** Warnings for the log, in tritonserver's words, about accepted settings with faults. */
export function metricsComplaints(settings: readonly NamedSetting[]): string[] {
  return settings
    .filter(({ key }) => key === "summary_quantiles")
    .flatMap(({ value }) => value.split(","))
    .filter((pair) => !pair.includes(":"))
    .map(
      (pair) => `Invalid option: [${pair}]. No ':' delimiter found. Expected format is <quantile>:<error>`,
    );
}
