import type { LatencyMetrics } from "./latency-metrics.js";

/** Distributions of a model's latencies, and the labels of its series. */
export interface LabelledLatencies {
  readonly labels: Readonly<Record<string, string>>;
  readonly latencies: LatencyMetrics;
}

const FIRST_RESPONSE = "nv_inference_first_response_histogram_ms";

/** Metric families of all models' latencies in Prometheus' text format. Series of one family are adjacent. */
export async function latencyPage(models: readonly LabelledLatencies[]): Promise<string> {
  const families = new Map<string, string[]>();
  const linesOf = (name: string, help: string, type: string): string[] => {
    const known = families.get(name);
    if (known !== undefined) return known;
    const opened = [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
    families.set(name, opened);
    return opened;
  };
  for (const { labels, latencies } of models) {
    for (const summary of latencies.summaries.values()) {
      const { name, help, values } = await summary.get();
      const lines = linesOf(name, help, "summary");
      const isEmpty = values.some(({ metricName, value }) => metricName === `${name}_count` && value === 0);
      for (const { metricName = name, labels: own, value } of values) {
        const known = isEmpty && metricName === name ? Number.NaN : value;
        lines.push(series(metricName, { ...labels, ...own }, known));
      }
    }
    const { firstResponse } = latencies;
    if (firstResponse === undefined) continue;
    const help = "Duration from request to first response in milliseconds";
    const lines = linesOf(FIRST_RESPONSE, help, "histogram");
    firstResponse.cumulative().forEach((count, index) => {
      lines.push(series(`${FIRST_RESPONSE}_bucket`, { ...labels, le: firstResponse.bounds[index]! }, count));
    });
    lines.push(
      series(`${FIRST_RESPONSE}_bucket`, { ...labels, le: "+Inf" }, firstResponse.count),
      series(`${FIRST_RESPONSE}_sum`, labels, firstResponse.sum),
      series(`${FIRST_RESPONSE}_count`, labels, firstResponse.count),
    );
  }
  return [...families.values()].map((lines) => `${lines.join("\n")}\n`).join("\n");
}

function series(
  name: string,
  labels: Readonly<Record<string, string | number | undefined>>,
  value: number,
): string {
  const pairs = Object.entries(labels).map(([key, text]) => `${key}="${escapeLabel(String(text))}"`);
  return `${name}{${pairs.join(",")}} ${Number.isNaN(value) ? "Nan" : value}`;
}

function escapeLabel(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
