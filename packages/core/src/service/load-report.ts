import type { ModelVersion } from "../model/model-version.js";

/** Load of the model that answered a request, in the terms of ORCA (Open Request Cost Aggregation). */
export interface LoadReport {
  /** Share of the model's instances that are busy, 0 to 1; undefined for an ensemble, which has none. */
  readonly applicationUtilization: number | undefined;
  /** Further values by name: `queue_length`, and for a model that generates text `kv_cache_utilization`. */
  readonly namedMetrics: Readonly<Record<string, number>>;
}

/** Header of a request that asks for a report, over gRPC a metadata key. Its value is the format. */
export const LOAD_REPORT_FORMAT_HEADER = "endpoint-load-metrics-format";

/** Header of an answer with a report in a text format. */
export const LOAD_REPORT_HEADER = "endpoint-load-metrics";

/** Reads a gauge that a model has set; undefined if there is no such gauge for the labels. */
export type GaugeReader = (
  name: string,
  labels: Readonly<Record<string, string>>,
) => Promise<number | undefined>;

/** Values that text models show on the metrics page, by their names in a report. The first two are Triton's names. */
const GAUGES = {
  kv_cache_utilization: "tritonjs_generation_kv_cache_usage",
  max_token_capacity: "tritonjs_generation_token_capacity",
  num_requests_running: "tritonjs_generation_running",
  num_requests_waiting: "tritonjs_generation_waiting",
} as const;

/** Reads the load of a model. */
export async function loadReportOf(model: ModelVersion, gaugeOf: GaugeReader): Promise<LoadReport> {
  const { name, version, statistics, isEnsemble } = model;
  const namedMetrics: Record<string, number> = { queue_length: statistics.pendingCount };
  const labels = { model: name, version: String(version) };
  for (const [metric, gauge] of Object.entries(GAUGES)) {
    const value = await gaugeOf(gauge, labels);
    if (value !== undefined) namedMetrics[metric] = value;
  }
  return { applicationUtilization: isEnsemble ? undefined : busyShare(model), namedMetrics };
}

function busyShare({ instances: { serving } }: ModelVersion): number {
  return serving.length === 0 ? 0 : serving.filter(({ busy }) => busy).length / serving.length;
}
