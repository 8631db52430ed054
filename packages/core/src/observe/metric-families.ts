import { errorFor, TritonError } from "@tritonjs/protocol";
import type { Metric, Registry } from "prom-client";
import { AsyncLocalStorage } from "#host";
import { notLoaded, unbundledRequire } from "../optional-packages.js";

export type SeriesLabels = Readonly<Record<string, string | number>>;

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
  /** Series that take long to make come one by one, so that a page can be written in turns of the event loop. */
  collect(): Iterable<Series> | Promise<Iterable<Series>>;
}

export function gauge(name: string, help: string, value: () => number): CollectedFamily {
  return { name, help, type: "gauge", collect: () => [{ labels: {}, value: value() }] };
}

export function counter(name: string, help: string, value: () => number): CollectedFamily {
  return { name, help, type: "counter", collect: () => [{ labels: {}, value: value() }] };
}

/**
 * Adds metric families to a registry. The registry collects them whenever it is scraped. Several servers may report to
 * one registry if their labels differ: a family is then registered once, with the series of all of them.
 *
 * @param labels labels that each series gets in addition to its own
 * @returns a function that removes the families again
 * @throws TritonError ALREADY_EXISTS if the registry has other metrics of these names, or those of a server with the
 * same labels. Then no family is added.
 */
export function reportTo(
  registry: Registry,
  families: readonly CollectedFamily[],
  labels: SeriesLabels = {},
): () => void {
  const key = JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)));
  for (const { name } of families) assertFree(registry, name, key);
  const reported = families.map((family) => {
    const known = registry.getSingleMetric(family.name);
    const one = isReported(known) ? known : new ReportedFamily(family);
    one.sources.set(key, { family, labels });
    registry.registerMetric(one as unknown as Metric);
    return { name: family.name, one };
  });
  return () => {
    for (const { name, one } of reported) {
      one.sources.delete(key);
      const registered: unknown = registry.getSingleMetric(name);
      if (one.sources.size === 0 && registered === one) registry.removeSingleMetric(name);
    }
  };
}

function assertFree(registry: Registry, name: string, key: string): void {
  const known: unknown = registry.getSingleMetric(name);
  if (known === undefined || (isReported(known) && !known.sources.has(key))) return;
  throw new TritonError(
    "ALREADY_EXISTS",
    isReported(known)
      ? `metrics.registry: another Triton already reports to this registry with the labels ${key}: close it first, or ` +
          "give each Triton other metrics.labels"
      : `metrics.registry: the registry already has a metric '${name}' that is not from a Triton: use another registry`,
  );
}

export function isReported(metric: unknown): metric is ReportedFamily {
  return metric instanceof ReportedFamily;
}

const readingForPage = new AsyncLocalStorage<true>();

/**
 * Reads a registry for a page. A reported family then has one series, with the labels that the registry adds to all. The
 * real ones are in its `sources`.
 */
export function readForPage<T>(read: () => T): T {
  return readingForPage.run(true, read);
}

/** A metric as registries of prom-client expect it. It works with every copy of prom-client that a program has. */
export class ReportedFamily {
  /** A registry for OpenMetrics shortens it. */
  name: string;
  readonly help: string;
  readonly type: CollectedFamily["type"];
  /** How the primary process of a cluster combines the values of its workers. */
  readonly aggregator = "sum";
  /** The family of each server, by its labels. */
  readonly sources = new Map<string, { readonly family: CollectedFamily; readonly labels: SeriesLabels }>();

  constructor({ name, help, type }: CollectedFamily) {
    this.name = name;
    this.help = help;
    this.type = type;
  }

  async get() {
    const { name, help, type, aggregator } = this;
    const values = readingForPage.getStore() ? [{ labels: {}, value: 0 }] : await this.#collect();
    return { name, help, type, aggregator, values };
  }

  async #collect(): Promise<Series[]> {
    const collected = await Promise.all(
      [...this.sources.values()].map(async ({ family, labels }) =>
        Array.from(await family.collect(), (series) => labelled(series, labels)),
      ),
    );
    return collected.flat();
  }

  /** The values belong to the server, so a reset of the registry leaves them. */
  reset(): void {}
}

function labelled({ metricName, labels, value, exemplar }: Series, further: SeriesLabels): Series {
  return {
    labels: { ...further, ...labels },
    value,
    ...(metricName !== undefined && { metricName }),
    ...(exemplar !== undefined && { exemplar }),
  };
}

let loaded: typeof import("prom-client") | undefined;

/**
 * Loads `prom-client` with the first metric or page, because importing it takes as long as importing the rest of the
 * library.
 *
 * @throws TritonError UNAVAILABLE if a bundler joined this package to a file that has no `prom-client` near it
 */
export function promClient(): typeof import("prom-client") {
  try {
    loaded ??= unbundledRequire(import.meta.url)("prom-client") as typeof import("prom-client");
    return loaded;
  } catch (cause) {
    const advice = "install it, or make @tritonjs/* external in the bundler's options";
    throw notLoaded("prom-client, which metrics need", cause, advice);
  }
}

export interface MetricFamily {
  readonly kind: "counter" | "gauge" | "histogram";
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  /** Upper bounds of a histogram. @default prom-client's */
  readonly buckets?: readonly number[] | undefined;
}

/** A change of one metric, in a form that can be sent between threads. */
export interface MetricChange {
  readonly family: MetricFamily;
  readonly labels: Readonly<Record<string, string>>;
  readonly action: "add" | "set" | "observe";
  readonly value: number;
}

/** Changes a metric of a registry. The first change makes its family, and later ones must be of its kind. */
export function applyMetricChange(registry: Registry, change: MetricChange): void {
  const { Counter, Gauge, Histogram } = promClient();
  const { family, labels, action, value } = change;
  const metric = registry.getSingleMetric(family.name) ?? createFamily(registry, family);
  if (metric instanceof Counter && action === "add") metric.inc(labels, value);
  else if (metric instanceof Gauge && action === "add") metric.inc(labels, value);
  else if (metric instanceof Gauge && action === "set") metric.set(labels, value);
  else if (metric instanceof Histogram && action === "observe") metric.observe(labels, value);
  else {
    throw errorFor(
      "INVALID_METRIC",
      `metric '${family.name}' already exists with another kind than ${family.kind}: choose another name`,
    );
  }
}

function createFamily(registry: Registry, { kind, name, help, labelNames, buckets }: MetricFamily) {
  const { Counter, Gauge, Histogram } = promClient();
  const configuration = { name, help, labelNames: [...labelNames], registers: [registry] };
  switch (kind) {
    case "counter":
      return new Counter(configuration);
    case "gauge":
      return new Gauge(configuration);
    case "histogram":
      return new Histogram({ ...configuration, ...(buckets === undefined ? {} : { buckets: [...buckets] }) });
  }
}

/** Latency metrics to collect, by the names of tritonserver's `--metrics-config`. */
export interface MetricsConfig {
  /** Sums of durations: `nv_inference_request_duration_us` and similar counters. @default true */
  readonly counterLatencies?: boolean;
  /** Histogram of the time to the first response: `nv_inference_first_response_histogram_ms`. @default false */
  readonly histogramLatencies?: boolean;
  /**
   * Summaries of durations over the last minute: `nv_inference_request_summary_us` and similar ones. They add about ten
   * microseconds to each request. @default false
   */
  readonly summaryLatencies?: boolean;
  /** Quantiles of the summaries, each between 0 and 1. @default [0.5, 0.9, 0.95, 0.99, 0.999] */
  readonly summaryQuantiles?: readonly number[];
}

export type ResolvedMetricsConfig = Required<MetricsConfig>;

export const DEFAULT_METRICS_CONFIG: ResolvedMetricsConfig = {
  counterLatencies: true,
  histogramLatencies: false,
  summaryLatencies: false,
  summaryQuantiles: [0.5, 0.9, 0.95, 0.99, 0.999],
};
