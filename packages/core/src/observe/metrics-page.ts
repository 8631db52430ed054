import type { Registry } from "prom-client";
import { addCacheMetrics, type CacheUsage } from "./cache-metrics.js";
import { latencyPage } from "./latency/latency-page.js";
import { DEFAULT_METRICS_CONFIG, type MetricsConfig } from "./latency/metrics-config.js";
import { MachineMetrics } from "./machine-metrics.js";
import { addModelMetrics, type MeteredModel } from "./metrics.js";
import { promClient } from "./prom-client.js";
import { addRequestMemoryMetrics, type MeteredRequestMemory } from "./request-memory-metrics.js";

/** Content of the page. */
export interface MetricsPageOptions {
  readonly metricsConfig?: MetricsConfig;
  /** Whether the page has metrics of the machine. @default true */
  readonly allowCpuMetrics?: boolean;
  /** The memory of received requests. @default no metrics of it */
  readonly memory?: MeteredRequestMemory;
}

/** The metrics of a server in Prometheus' text format. */
export class MetricsPage {
  readonly #own: () => Registry;
  readonly #machine: MachineMetrics | undefined;
  readonly #memory: MeteredRequestMemory | undefined;
  readonly #counterLatencies: boolean;
  readonly #cache: (() => CacheUsage | undefined) | undefined;

  /**
   * @param own metrics of the user, which are printed last
   * @param cache returns the usage of the response cache; undefined for a cache that does not report it
   */
  constructor(
    own: () => Registry,
    { metricsConfig, allowCpuMetrics = true, memory }: MetricsPageOptions,
    cache?: () => CacheUsage | undefined,
  ) {
    this.#own = own;
    this.#cache = cache;
    this.#memory = memory;
    this.#machine = allowCpuMetrics ? new MachineMetrics() : undefined;
    this.#counterLatencies = metricsConfig?.counterLatencies ?? DEFAULT_METRICS_CONFIG.counterLatencies;
  }

  async write(models: readonly MeteredModel[]): Promise<string> {
    const registry = new (promClient().Registry)();
    addModelMetrics(registry, models, this.#counterLatencies);
    if (this.#memory !== undefined) addRequestMemoryMetrics(registry, this.#memory);
    this.#machine?.addTo(registry);
    const cache = this.#cache?.();
    if (cache !== undefined) addCacheMetrics(registry, cache);
    const distributions = models.flatMap(({ labels, statistics: { latencies } }) =>
      latencies === undefined ? [] : [{ labels, latencies }],
    );
    const pages = [await registry.metrics(), await latencyPage(distributions), await this.#own().metrics()];
    return pages.filter((page) => page.trim() !== "").join("\n");
  }
}
