import { parser } from "@prometheus-io/lezer-promql";

/** What a query asks of a metric. */
export interface AskedSeries {
  readonly metric: string;
  /** Labels that its matchers name. */
  readonly labels: readonly string[];
}

export interface AskedNames {
  readonly series: readonly AskedSeries[];
  /** Labels by which the query groups or joins. */
  readonly grouping: readonly string[];
}

/**
 * Reads the metrics and labels of a PromQL query.
 *
 * @throws Error for an invalid query
 */
export function namesOfQuery(query: string): AskedNames {
  const series: { metric: string; labels: string[] }[] = [];
  const grouping: string[] = [];
  const tree = parser.parse(query);
  tree.iterate({
    enter({ type, from, to, node }) {
      const text = query.slice(from, to);
      if (type.isError) throw new Error(`invalid PromQL at '${query.slice(from, from + 20)}': ${query}`);
      if (type.name === "VectorSelector") {
        const metric = node.getChild("Identifier");
        if (metric === null) throw new Error(`a selector without a metric: ${query}`);
        series.push({ metric: query.slice(metric.from, metric.to), labels: [] });
      }
      if (type.name === "LabelName") {
        const isGrouping = node.parent?.type.name === "GroupingLabels";
        if (isGrouping) grouping.push(text);
        else series.at(-1)!.labels.push(text);
      }
    },
  });
  return { series, grouping };
}
