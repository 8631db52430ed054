/** Labels of a series. */
export type SeriesLabels = Readonly<Record<string, string | number>>;

/** One value of a metric family. */
export interface Series {
  readonly labels: SeriesLabels;
  readonly value: number;
  /** Name of the series if it differs from that of its family: `..._count` of a summary. */
  readonly metricName?: string | undefined;
}

/** A metric family whose values exist as plain numbers elsewhere. They are read when the metrics are scraped. */
export interface CollectedFamily {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "summary" | "histogram";
  collect(): readonly Series[] | Promise<readonly Series[]>;
}
