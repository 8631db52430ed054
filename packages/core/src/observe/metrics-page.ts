import type { Registry } from "prom-client";
import { addCacheMetrics, type CacheUsage } from "./cache-metrics.js";
import { latencyPage } from "./latency/latency-page.js";
import { DEFAULT_METRICS_CONFIG, type MetricsConfig } from "./latency/metrics-config.js";
import { MachineMetrics } from "./machine-metrics.js";
import { addModelMetrics, type MeteredModel } from "./metrics.js";
import { promClient } from "./prom-client.js";

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

/** The memory of received requests, as the metrics see it. */
interface MeteredRequestMemory {
  readonly usedBytes: number;
  readonly limitBytes: number;
  /** Requests that were refused since the start, by reason. */
  readonly refusals: Readonly<Record<string, number>>;
}

/**
 * Adds the metric families of the memory of requests to a page. They are specific to this library: Triton has no such
 * limit.
 */
function addRequestMemoryMetrics(registry: Registry, memory: MeteredRequestMemory): void {
  const { Counter, Gauge } = promClient();
  const registers = [registry];
  new Gauge({
    name: "tritonjs_request_memory_used_bytes",
    help: "Bytes that requests take as received and as unpacked, from their first byte to their answer",
    registers,
  }).set(memory.usedBytes);
  new Gauge({
    name: "tritonjs_request_memory_limit_bytes",
    help: "Bytes that all requests together may take",
    registers,
  }).set(memory.limitBytes);
  const refusals = new Counter({
    name: "tritonjs_request_memory_refused_total",
    help: "Number of requests that were refused for their memory, by reason",
    labelNames: ["reason"],
    registers,
  });
  for (const [reason, count] of Object.entries(memory.refusals)) refusals.inc({ reason }, count);
}
