import { TritonError } from "@tritonjs/protocol";
import type { Registry } from "prom-client";
import { promClient } from "./prom-client.js";

/** A metric family that a model defines itself. */
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

/**
 * Changes a metric of a registry. The first change makes its family.
 *
 * @throws TritonError INVALID_ARG when a family of the same name has another kind, and prom-client's errors for invalid
 * names
 */
export function applyMetricChange(registry: Registry, change: MetricChange): void {
  const { Counter, Gauge, Histogram } = promClient();
  const { family, labels, action, value } = change;
  const metric = registry.getSingleMetric(family.name) ?? createFamily(registry, family);
  if (metric instanceof Counter && action === "add") metric.inc(labels, value);
  else if (metric instanceof Gauge && action === "add") metric.inc(labels, value);
  else if (metric instanceof Gauge && action === "set") metric.set(labels, value);
  else if (metric instanceof Histogram && action === "observe") metric.observe(labels, value);
  else {
    throw new TritonError(
      "INVALID_ARG",
      `metric '${family.name}' already exists with another kind than ${family.kind}: choose another name`,
      { reason: "INVALID_METRIC" },
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
