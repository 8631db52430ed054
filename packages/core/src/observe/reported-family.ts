import { TritonError } from "@tritonjs/protocol";
import type { Metric, Registry } from "prom-client";
import type { CollectedFamily, Series, SeriesLabels } from "./collected-family.js";

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

/** True for a family without a value in a page of the registry. Its text has only two lines, with its help and type. */
export function isEmptyFamily(metric: unknown, text: string): boolean {
  return isReported(metric) && text.split("\n", 3).length < 3;
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

function isReported(metric: unknown): metric is ReportedFamily {
  return metric instanceof ReportedFamily;
}

/** A metric as registries of prom-client expect it. It works with every copy of prom-client that a program has. */
class ReportedFamily {
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
    const collected = await Promise.all(
      [...this.sources.values()].map(async ({ family, labels }) => {
        return (await family.collect()).map((series) => labelled(series, labels));
      }),
    );
    return { name, help, type, aggregator, values: collected.flat() };
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
