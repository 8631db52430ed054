import type { CollectedFamily, Series } from "../collected-family.js";
import type { MeteredModel } from "../metrics.js";
import { type LatencyMetrics, SUMMARIES, type SummaryName } from "./latency-metrics.js";
import type { ResolvedMetricsConfig } from "./metrics-config.js";

const FIRST_RESPONSE = "nv_inference_first_response_histogram_ms";

/** The metric families of the latencies' distributions that the server keeps. */
export function latencyFamilies(
  models: () => readonly MeteredModel[],
  { histogramLatencies, summaryLatencies }: ResolvedMetricsConfig,
): CollectedFamily[] {
  return [
    ...(summaryLatencies ? summaryFamilies(models) : []),
    ...(histogramLatencies ? [firstResponseFamily(models)] : []),
  ];
}

function summaryFamilies(models: () => readonly MeteredModel[]): CollectedFamily[] {
  return (Object.keys(SUMMARIES) as SummaryName[]).map((key) => {
    const [name, help] = SUMMARIES[key];
    const collect = async () =>
      (await Promise.all(models().map((model) => summarySeries(model, key)))).flat();
    return { name, help, type: "summary", collect };
  });
}

/** A summary without an observation has quantiles that are not a number, as in Triton. */
async function summarySeries({ labels, statistics }: MeteredModel, key: SummaryName): Promise<Series[]> {
  const summary = statistics.latencies?.summaries.get(key);
  if (summary === undefined) return [];
  const { name, values } = await summary.get();
  const isEmpty = values.some(({ metricName, value }) => metricName === `${name}_count` && value === 0);
  return values.map(({ metricName = name, labels: own, value }) => ({
    metricName,
    labels: { ...labels, ...(own as Series["labels"]) },
    value: isEmpty && metricName === name ? Number.NaN : value,
  }));
}

function firstResponseFamily(models: () => readonly MeteredModel[]): CollectedFamily {
  return {
    name: FIRST_RESPONSE,
    help: "Duration from request to first response in milliseconds",
    type: "histogram",
    collect: () =>
      models().flatMap(({ labels, statistics }) => firstResponseSeries(labels, statistics.latencies)),
  };
}

function firstResponseSeries(labels: Series["labels"], latencies: LatencyMetrics | undefined): Series[] {
  const { firstResponse } = latencies ?? {};
  if (firstResponse === undefined) return [];
  const bucket = (le: number | string, value: number) => ({
    metricName: `${FIRST_RESPONSE}_bucket`,
    labels: { ...labels, le },
    value,
  });
  return [
    ...firstResponse.cumulative().map((count, index) => bucket(firstResponse.bounds[index]!, count)),
    bucket("+Inf", firstResponse.count),
    { metricName: `${FIRST_RESPONSE}_sum`, labels, value: firstResponse.sum },
    { metricName: `${FIRST_RESPONSE}_count`, labels, value: firstResponse.count },
  ];
}
