import type { MetricsConfig } from "@tritonjs/core";
import type { NamedSetting } from "../options/read-setting.js";

/** The settings of `--metrics-config`; unknown ones and bad values are left alone, as by tritonserver. */
export function metricsSettings(settings: readonly NamedSetting[]): MetricsConfig {
  const config: { -readonly [Key in keyof MetricsConfig]: MetricsConfig[Key] } = {};
  for (const { key, value } of settings) {
    if (key === "counter_latencies") config.counterLatencies = value !== "false";
    if (key === "histogram_latencies") config.histogramLatencies = value === "true";
    if (key === "summary_latencies") config.summaryLatencies = value === "true";
    if (key === "summary_quantiles") {
      // Each is <quantile>:<error>; the error says how exact a summary has to be, which ours are anyway.
      const quantiles = value.split(",").map((pair) => Number(pair.split(":")[0]));
      config.summaryQuantiles = quantiles.filter((quantile) => quantile >= 0 && quantile <= 1);
    }
  }
  return config;
}

/** What is wrong with settings that are taken all the same, in tritonserver's words: for the log. */
export function metricsComplaints(settings: readonly NamedSetting[]): string[] {
  return settings
    .filter(({ key }) => key === "summary_quantiles")
    .flatMap(({ value }) => value.split(","))
    .filter((pair) => !pair.includes(":"))
    .map(
      (pair) => `Invalid option: [${pair}]. No ':' delimiter found. Expected format is <quantile>:<error>`,
    );
}
