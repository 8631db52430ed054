import { TritonError } from "@tritonjs/protocol";
import type { Registry } from "prom-client";

type Kind = "COUNTER" | "GAUGE" | "HISTOGRAM";
type Labels = Readonly<Record<string, string>>;

/** One metric, with the number of models' objects that refer to it. */
interface Series {
  readonly labels: Labels;
  readonly bounds: readonly number[];
  readonly buckets: number[];
  users: number;
  value: number;
  count: number;
}

/**
 * The part of a registry that is used. It takes any object with `name`, `get` and `reset`, but its type names the
 * classes of prom-client.
 */
interface FamilyRegistry {
  registerMetric(family: object): void;
}

/** A family on the metrics page. Unlike a family of prom-client it takes any labels, and can lose metrics. */
class Family {
  readonly series = new Map<string, Series>();
  readonly aggregator = "sum";
  users = 0;

  constructor(
    readonly name: string,
    readonly help: string,
    readonly kind: Kind,
  ) {}

  /** Called by prom-client. */
  async get(): Promise<object> {
    const { name, help, aggregator } = this;
    const values = [...this.series.values()].flatMap((one) => this.#values(one));
    return { name, help, aggregator, type: this.kind.toLowerCase(), values };
  }

  reset(): void {}

  #values({ labels, value, count, bounds, buckets }: Series): object[] {
    if (this.kind !== "HISTOGRAM") return [{ labels, value }];
    let below = 0;
    const named = (suffix: string) => `${this.name}_${suffix}`;
    const rows = bounds.map((bound, i) => {
      below += buckets[i]!;
      return { labels: { ...labels, le: bound }, value: below, metricName: named("bucket") };
    });
    return [
      ...rows,
      { labels: { ...labels, le: "+Inf" }, value: count, metricName: named("bucket") },
      { labels, value, metricName: named("sum") },
      { labels, value: count, metricName: named("count") },
    ];
  }
}

/** Families that models of one registry share. */
const familiesOf = new WeakMap<Registry, Map<string, Family>>();

/** The metrics of one process of a Python model. They are on the page while the objects that refer to them exist. */
export class ModelMetrics {
  readonly #families = new Map<number, Family>();
  readonly #metrics = new Map<number, { readonly family: Family; readonly key: string }>();
  #next = 1;

  constructor(private readonly registry: Registry) {}

  /** @throws TritonError ALREADY_EXISTS for a name that is taken by another metric */
  createFamily(name: string, help: string, kind: Kind): number {
    const shared = familiesOf.get(this.registry) ?? new Map<string, Family>();
    familiesOf.set(this.registry, shared);
    let family = shared.get(name);
    if (family === undefined || family.kind !== kind) {
      if (family !== undefined || this.registry.getSingleMetric(name) !== undefined) {
        throw new TritonError(
          "ALREADY_EXISTS",
          `metric '${name}' already exists with another kind than ${kind}: choose another name`,
        );
      }
      if (!/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name)) {
        throw new TritonError(
          "INVALID_ARG",
          `invalid name of a metric '${name}': expected letters, digits, '_' and ':', and no digit first`,
          {
            reason: "INVALID_METRIC",
          },
        );
      }
      family = new Family(name, help, kind);
      shared.set(name, family);
      const page: FamilyRegistry = this.registry;
      page.registerMetric(family);
    }
    family.users++;
    this.#families.set(this.#next, family);
    return this.#next++;
  }

  createMetric(familyId: number, labels: Labels | null, buckets: readonly number[] | null): number {
    const family = this.#families.get(familyId);
    if (family === undefined) throw gone();
    for (const label of Object.keys(labels ?? {})) {
      if (!/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(label)) {
        throw new TritonError(
          "INVALID_ARG",
          `invalid label '${label}' of metric '${family.name}': expected letters, digits and '_', and no digit first`,
          {
            reason: "INVALID_METRIC",
          },
        );
      }
    }
    const key = JSON.stringify(Object.entries(labels ?? {}).sort());
    const bounds = buckets ?? [];
    if (bounds.some((bound, i) => !(i === 0 || bound > bounds[i - 1]!))) {
      throw new TritonError("INVALID_ARG", `buckets of metric '${family.name}': expected ascending order`, {
        reason: "INVALID_METRIC",
      });
    }
    const series = family.series.get(key) ?? {
      labels: labels ?? {},
      bounds,
      buckets: bounds.map(() => 0),
      users: 0,
      value: 0,
      count: 0,
    };
    series.users++;
    family.series.set(key, series);
    this.#metrics.set(this.#next, { family, key });
    return this.#next++;
  }

  change(id: number, how: "increment" | "set" | "observe", value: number): void {
    const { family, series } = this.#find(id);
    const { kind } = family;
    if (how === "increment" && kind === "COUNTER" && value < 0) {
      throw new TritonError(
        "INVALID_ARG",
        "TRITONSERVER_METRIC_KIND_COUNTER does not support negative value",
        { reason: "INVALID_METRIC" },
      );
    }
    const fits =
      how === "set" ? kind === "GAUGE" : how === "observe" ? kind === "HISTOGRAM" : kind !== "HISTOGRAM";
    if (!fits) {
      throw new TritonError("UNSUPPORTED", `TRITONSERVER_METRIC_KIND_${kind} does not support ${VERBS[how]}`);
    }
    if (how === "set") series.value = value;
    else series.value += value;
    if (how !== "observe") return;
    series.count++;
    const bucket = series.bounds.findIndex((bound) => value <= bound);
    if (bucket >= 0) series.buckets[bucket]!++;
  }

  value(id: number): number {
    const { family, series } = this.#find(id);
    if (family.kind === "HISTOGRAM") {
      throw new TritonError("UNSUPPORTED", "TRITONSERVER_METRIC_KIND_HISTOGRAM does not support Value");
    }
    return series.value;
  }

  deleteMetric(id: number): void {
    const found = this.#metrics.get(id);
    this.#metrics.delete(id);
    const series = found?.family.series.get(found.key);
    if (found === undefined || series === undefined || --series.users > 0) return;
    found.family.series.delete(found.key);
  }

  deleteFamily(id: number): void {
    const family = this.#families.get(id);
    this.#families.delete(id);
    if (family === undefined || --family.users > 0) return;
    familiesOf.get(this.registry)?.delete(family.name);
    this.registry.removeSingleMetric(family.name);
  }

  /** Releases all metrics when the process has ended. */
  clear(): void {
    for (const id of [...this.#metrics.keys()]) this.deleteMetric(id);
    for (const id of [...this.#families.keys()]) this.deleteFamily(id);
  }

  #find(id: number): { readonly family: Family; readonly series: Series } {
    const found = this.#metrics.get(id);
    const series = found?.family.series.get(found.key);
    if (found === undefined || series === undefined) throw gone();
    return { family: found.family, series };
  }
}

const VERBS = { increment: "Increment", set: "Set", observe: "Observe" } as const;

function gone(): TritonError {
  return new TritonError(
    "INTERNAL",
    "Invalid metric operation as the corresponding 'MetricFamily' has been deleted. The 'MetricFamily' object should " +
      "be deleted AFTER its corresponding 'Metric' objects have been deleted.",
  );
}
