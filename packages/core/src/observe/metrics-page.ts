import { TritonError } from "@tritonjs/protocol";
import type { Registry } from "prom-client";
import { type CacheUsage, cacheFamilies } from "./cache-metrics.js";
import { type CollectedFamily, gauge } from "./collected-family.js";
import { durationFamilies } from "./latency/duration-families.js";
import { latencyFamilies } from "./latency/latency-families.js";
import { DEFAULT_METRICS_CONFIG, type MetricsConfig } from "./latency/metrics-config.js";
import type { GpuMetrics } from "./machine/gpu-metrics.js";
import { MachineMetrics } from "./machine/machine-metrics.js";
import { ProcessMetrics } from "./machine/process-metrics.js";
import { type MeteredModel, modelFamilies } from "./metrics.js";
import { metricsFormat } from "./metrics-format.js";
import { OPEN_METRICS_TYPE, openMetricsText, type ReadFamily } from "./open-metrics-text.js";
import { promClient } from "./prom-client.js";
import { isEmptyFamily, reportTo } from "./reported-family.js";

/** Where the metrics of a server are kept. */
export interface MetricsReportOptions {
  /**
   * Registry of prom-client that collects the metrics whenever it is scraped: the `register` of the program, for
   * instance. It is also the `metrics` of the `Triton`, and the metrics page shows all of it. The families leave it when
   * the `Triton` is closed.
   * @default a registry of the `Triton`
   */
  readonly registry?: Registry;
  /**
   * Labels that each series of the server gets. Two servers that report to one registry need different ones.
   * @default none
   */
  readonly labels?: Readonly<Record<string, string>>;
}

/** What the metrics are made of. */
export interface MetricsSources {
  /** The models in service. */
  readonly models: () => readonly MeteredModel[];
  /** Whether to report metrics of the machine and of the process. @default true */
  readonly allowCpuMetrics?: boolean;
  /** The GPUs. @default no metrics of them */
  readonly gpus?: GpuMetrics | undefined;
  readonly metricsConfig?: MetricsConfig;
  /** The memory of received requests. @default no metrics of it */
  readonly memory?: MeteredRequestMemory;
  /** Usage of the response cache. @default no metrics of it */
  readonly cache?: (() => CacheUsage | undefined) | undefined;
}

/** The metrics page in the format that its client wants. */
export interface MetricsText {
  /** Media type of the text. */
  readonly type: string;
  readonly text: string;
}

const PROMETHEUS_TYPE = "text/plain; charset=utf-8";

/** The metrics of a server, in a registry and as a page in Prometheus' text format or in the OpenMetrics format. */
export class MetricsPage {
  readonly #sources: MetricsSources;
  readonly #options: MetricsReportOptions;
  readonly #process = new ProcessMetrics();
  #processRegistry: Registry | undefined;
  #registry: Registry | undefined;
  #stopReporting: (() => void) | undefined;

  /** @throws TritonError INVALID_ARG for a label that metrics cannot have */
  constructor(sources: MetricsSources, options: MetricsReportOptions = {}) {
    for (const name of Object.keys(options.labels ?? {})) assertLabel(name);
    this.#sources = sources;
    this.#options = options;
  }

  /** The registry with the metrics of the server, the models, and the program. It is made when it is first used. */
  get registry(): Registry {
    if (this.#registry === undefined) {
      this.#registry = this.#options.registry ?? new (promClient().Registry)();
      this.#stopReporting = reportTo(this.#registry, this.#families(), this.#options.labels);
    }
    return this.#registry;
  }

  /** @throws TritonError ALREADY_EXISTS if the metrics cannot be added to the registry of the program. */
  open(): void {
    if (this.#options.registry !== undefined) void this.registry;
  }

  /** Removes the metrics from the registry of the program. */
  close(): void {
    if (this.#options.registry !== undefined) this.#stopReporting?.();
    this.#process.close();
  }

  /**
   * The whole registry as text.
   *
   * @param accept header of the client
   */
  async writeFor(accept: string | undefined): Promise<MetricsText> {
    const { registry } = this;
    if (registry.contentType.startsWith("application/openmetrics-text")) {
      return { type: OPEN_METRICS_TYPE, text: await registry.metrics() };
    }
    return metricsFormat(accept) === "openmetrics"
      ? { type: OPEN_METRICS_TYPE, text: openMetricsText(await this.#read()) }
      : { type: PROMETHEUS_TYPE, text: await this.write() };
  }

  /** The whole registry as text. In a registry of its own, families without a value are left out, as in Triton. */
  async write(): Promise<string> {
    const { registry } = this;
    if (this.#options.registry !== undefined) return registry.metrics();
    const own = registry.getMetricsAsArray().map((metric) => [registry, metric] as const);
    const further = this.#furtherRegistry();
    const ofProcess = further?.getMetricsAsArray() ?? [];
    const process = ofProcess
      .filter(({ name }) => registry.getSingleMetric(name) === undefined)
      .map((metric) => [further!, metric] as const);
    const texts = await Promise.all(
      [...own, ...process].map(async ([holder, metric]) => {
        const text = await holder.getSingleMetricAsString(metric.name);
        return isEmptyFamily(metric, text) ? [] : [text];
      }),
    );
    const page = texts.flat().join("\n\n");
    return page === "" ? "" : `${page}\n`;
  }

  /** Value of a metric that a model has set; undefined without such a series. */
  async gauge(name: string, labels: Readonly<Record<string, string>>): Promise<number | undefined> {
    const metric = (this.#registry ?? this.#options.registry)?.getSingleMetric(name);
    if (metric === undefined) return undefined;
    const { values } = await metric.get();
    const wanted = Object.entries(labels);
    return values.find((one) =>
      wanted.every(([label, value]) => (one.labels as Record<string, unknown>)[label] === value),
    )?.value;
  }

  /** What {@link write} writes. */
  async #read(): Promise<ReadFamily[]> {
    const { registry } = this;
    const own = (await registry.getMetricsAsJSON()) as unknown as ReadFamily[];
    const further = (await this.#furtherRegistry()?.getMetricsAsJSON()) as unknown as
      | ReadFamily[]
      | undefined;
    const known = new Set(own.map(({ name }) => name));
    return [...own, ...(further ?? []).filter(({ name }) => !known.has(name))].filter(
      ({ values }) => this.#options.registry !== undefined || values.length > 0,
    );
  }

  /**
   * Metrics of the process for the page of a server with a registry of its own. They are in no registry of a program,
   * because `collectDefaultMetrics` of prom-client adds metrics of the same names.
   */
  #furtherRegistry(): Registry | undefined {
    const { allowCpuMetrics = true } = this.#sources;
    if (this.#options.registry !== undefined || !allowCpuMetrics) return undefined;
    if (this.#processRegistry === undefined) {
      this.#processRegistry = new (promClient().Registry)();
      reportTo(this.#processRegistry, this.#process.families());
    }
    return this.#processRegistry;
  }

  #families(): CollectedFamily[] {
    const { models, allowCpuMetrics = true, metricsConfig, gpus, memory, cache } = this.#sources;
    const config = { ...DEFAULT_METRICS_CONFIG, ...metricsConfig };
    return [
      ...modelFamilies(models, config.counterLatencies),
      ...durationFamilies(models),
      ...(memory === undefined ? [] : requestMemoryFamilies(memory)),
      ...(gpus === undefined ? [] : gpus.families()),
      ...(allowCpuMetrics ? new MachineMetrics().families() : []),
      ...(cache === undefined ? [] : cacheFamilies(cache)),
      ...latencyFamilies(models, config),
    ];
  }
}

/** Labels that the series have already. */
const OWN_LABELS: ReadonlySet<string> = new Set([
  "model",
  "version",
  "namespace",
  "reason",
  "le",
  "quantile",
  "gpu_uuid",
]);

function assertLabel(name: string): void {
  if (/^[a-zA-Z_]\w*$/.test(name) && !OWN_LABELS.has(name)) return;
  const own = [...OWN_LABELS].join(", ");
  throw new TritonError(
    "INVALID_ARG",
    `metrics.labels: expected letters, digits and underscores, and none of ${own}, got '${name}'`,
    { reason: "INVALID_OPTION" },
  );
}

/** The memory of received requests, as the metrics see it. */
interface MeteredRequestMemory {
  readonly usedBytes: number;
  readonly limitBytes: number;
  /** Requests that were refused since the start, by reason. */
  readonly refusals: Readonly<Record<string, number>>;
}

/** Metric families of the memory of requests. They are specific to this library: Triton has no such limit. */
function requestMemoryFamilies(memory: MeteredRequestMemory): CollectedFamily[] {
  return [
    gauge(
      "tritonjs_request_memory_used_bytes",
      "Bytes that requests take as received and as unpacked, from their first byte to their answer",
      () => memory.usedBytes,
    ),
    gauge(
      "tritonjs_request_memory_limit_bytes",
      "Bytes that all requests together may take",
      () => memory.limitBytes,
    ),
    {
      name: "tritonjs_request_memory_refused_total",
      help: "Number of requests that were refused for their memory, by reason",
      type: "counter",
      collect: () =>
        Object.entries(memory.refusals).map(([reason, value]) => ({ labels: { reason }, value })),
    },
  ];
}
