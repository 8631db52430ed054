/** Labels of a series. */
export type SeriesLabels = Readonly<Record<string, string | number>>;

/** One value of a metric family. */
export interface Series {
  readonly labels: SeriesLabels;
  readonly value: number;
  /** Name of the series if it differs from that of its family: `..._count` of a summary. */
  readonly metricName?: string | undefined;
  /** A traced request that the value counts. Only pages in the OpenMetrics format show it. */
  readonly exemplar?: Exemplar | undefined;
}

/** One observation of a histogram's bucket, and where to find it. */
export interface Exemplar {
  /** `trace_id`. */
  readonly labelSet: SeriesLabels;
  readonly value: number;
  /** Seconds since 1970. */
  readonly timestamp: number;
}

/** A metric family whose values exist as plain numbers elsewhere. They are read when the metrics are scraped. */
export interface CollectedFamily {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "summary" | "histogram";
  collect(): readonly Series[] | Promise<readonly Series[]>;
}

/** A family with a single value. */
export function gauge(name: string, help: string, value: () => number): CollectedFamily {
  return { name, help, type: "gauge", collect: () => [{ labels: {}, value: value() }] };
}

/** A counter with a single value. */
export function counter(name: string, help: string, value: () => number): CollectedFamily {
  return { name, help, type: "counter", collect: () => [{ labels: {}, value: value() }] };
}
