import type { Exemplar, SeriesLabels } from "./collected-family.js";

/** Media type of pages in the OpenMetrics format. */
export const OPEN_METRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/** A family as a registry of prom-client gives it. */
export interface ReadFamily {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly values: readonly ReadSeries[];
}

interface ReadSeries {
  readonly labels: Readonly<Record<string, string | number | undefined>>;
  readonly value: number;
  readonly metricName?: string | undefined;
  readonly exemplar?: (Omit<Exemplar, "labelSet"> & { readonly labelSet?: SeriesLabels }) | null | undefined;
}

const TOTAL = "_total";

/**
 * Writes families in the OpenMetrics format. All series have the same names as in Prometheus' text format: this format
 * wants counters to end with `_total`, so Triton's counters, whose names do not, are of the type `unknown`.
 */
export function openMetricsText(families: readonly ReadFamily[]): string {
  const lines = families.flatMap(familyLines);
  return `${[...lines, "# EOF"].join("\n")}\n`;
}

function familyLines({ name, help, type, values }: ReadFamily): string[] {
  const isCounter = type === "counter" && name.endsWith(TOTAL);
  const familyName = isCounter ? name.slice(0, -TOTAL.length) : name;
  const takesExemplars = isCounter || type === "histogram";
  return [
    `# HELP ${familyName} ${escaped(help)}`,
    `# TYPE ${familyName} ${isCounter || type !== "counter" ? type : "unknown"}`,
    ...values.map((series) => seriesLine(name, series, takesExemplars)),
  ];
}

function seriesLine(
  name: string,
  { metricName = name, labels, value, exemplar }: ReadSeries,
  takesExemplars: boolean,
): string {
  const line = `${metricName}${labelSet(labels)} ${number(value)}`;
  if (!takesExemplars || exemplar === undefined || exemplar === null) return line;
  const { labelSet: about = {}, value: observed, timestamp } = exemplar;
  return `${line} # ${labelSet(about) || "{}"} ${number(observed)} ${timestamp}`;
}

function labelSet(labels: ReadSeries["labels"]): string {
  const pairs = Object.entries(labels).flatMap(([key, value]) =>
    value === undefined ? [] : [`${key}="${escaped(String(value))}"`],
  );
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function number(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');
}
