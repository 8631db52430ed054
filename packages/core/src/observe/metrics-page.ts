import { errorFor, optionTypes } from "@tritonjs/protocol";
import type { Registry } from "prom-client";
import { type GpuMetrics, MachineMetrics, ProcessMetrics } from "./machine-metrics.js";
import {
  type CollectedFamily,
  DEFAULT_METRICS_CONFIG,
  type Exemplar,
  isEmptyFamily,
  type MetricsConfig,
  promClient,
  reportTo,
  type SeriesLabels,
} from "./metric-families.js";
import {
  type CacheUsage,
  cacheFamilies,
  cacheGuardFamilies,
  latencyFamilies,
  type MeteredCache,
  type MeteredModel,
  type MeteredRequestMemory,
  modelFamilies,
  requestMemoryFamilies,
} from "./model-families.js";

/** Where the metrics of a server are kept. */
export interface MetricsReportOptions {
  /**
   * Registry of prom-client that collects the metrics whenever it is scraped: the `register` of the program, for
   * instance. It is also the `metrics` of the `Triton`, and the metrics page shows all of it. The families leave it when
   * the `Triton` is closed.
   * @default a registry of the `Triton`
   */
  readonly registry?: Registry;
  /** Labels of each series. Servers that report to one registry need different ones. @default none */
  readonly labels?: Readonly<Record<string, string>>;
}

export const METRICS_REPORT_OPTION_TYPES = optionTypes<MetricsReportOptions>({
  registry: "object",
  labels: "object",
});

interface MetricsSources {
  /** The models in service. */
  readonly models: () => readonly MeteredModel[];
  /** Whether to report metrics of the machine and of the process. @default true */
  readonly allowCpuMetrics?: boolean | undefined;
  /** The GPUs. @default no metrics of them */
  readonly gpus?: GpuMetrics | undefined;
  readonly metricsConfig?: MetricsConfig | undefined;
  /** The memory of received requests. @default no metrics of it */
  readonly memory?: MeteredRequestMemory;
  /** Usage of the response cache. @default no metrics of it */
  readonly cache?: (() => CacheUsage | undefined) | undefined;
  /** Whether the response cache answers. @default no metrics of it */
  readonly cacheGuard?: MeteredCache | undefined;
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
  readonly #process = new ProcessMetrics();
  #processRegistry: Registry | undefined;
  #registry: Registry | undefined;
  #stopReporting: (() => void) | undefined;

  /** @throws TritonError INVALID_ARG for a label that metrics cannot have */
  constructor(
    private readonly sources: MetricsSources,
    private readonly options: MetricsReportOptions = {},
  ) {
    for (const name of Object.keys(options.labels ?? {})) assertLabel(name);
  }

  /** The registry with the metrics of the server, the models, and the program. It is made when it is first used. */
  get registry(): Registry {
    if (this.#registry === undefined) {
      this.#registry = this.options.registry ?? new (promClient().Registry)();
      this.#stopReporting = reportTo(this.#registry, this.#families(), this.options.labels);
    }
    return this.#registry;
  }

  /** @throws TritonError ALREADY_EXISTS if the metrics cannot be added to the registry of the program. */
  open(): void {
    if (this.options.registry !== undefined) void this.registry;
  }

  /** Removes the metrics from the registry of the program. */
  close(): void {
    if (this.options.registry !== undefined) this.#stopReporting?.();
    this.#process.close();
  }

  /** The whole registry as text, in the format that the client accepts. */
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
    if (this.options.registry !== undefined) return registry.metrics();
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
    const metric = (this.#registry ?? this.options.registry)?.getSingleMetric(name);
    if (metric === undefined) return undefined;
    const { values } = await metric.get();
    const wanted = Object.entries(labels);
    return values.find((one) =>
      wanted.every(([label, value]) => (one.labels as Record<string, unknown>)[label] === value),
    )?.value;
  }

  async #read(): Promise<ReadFamily[]> {
    const { registry } = this;
    const own = (await registry.getMetricsAsJSON()) as unknown as ReadFamily[];
    const further = (await this.#furtherRegistry()?.getMetricsAsJSON()) as unknown as
      | ReadFamily[]
      | undefined;
    const known = new Set(own.map(({ name }) => name));
    return [...own, ...(further ?? []).filter(({ name }) => !known.has(name))].filter(
      ({ values }) => this.options.registry !== undefined || values.length > 0,
    );
  }

  /**
   * Metrics of the process for the page of a server with a registry of its own. They are in no registry of a program,
   * because `collectDefaultMetrics` of prom-client adds metrics of the same names.
   */
  #furtherRegistry(): Registry | undefined {
    const { allowCpuMetrics = true } = this.sources;
    if (this.options.registry !== undefined || !allowCpuMetrics) return undefined;
    if (this.#processRegistry === undefined) {
      this.#processRegistry = new (promClient().Registry)();
      reportTo(this.#processRegistry, this.#process.families());
    }
    return this.#processRegistry;
  }

  #families(): CollectedFamily[] {
    const { models, allowCpuMetrics = true, metricsConfig, gpus, memory, cache, cacheGuard } = this.sources;
    const config = { ...DEFAULT_METRICS_CONFIG, ...metricsConfig };
    return [
      ...modelFamilies(models, config),
      ...(memory === undefined ? [] : requestMemoryFamilies(memory)),
      ...(gpus === undefined ? [] : gpus.families()),
      ...(allowCpuMetrics ? new MachineMetrics().families() : []),
      ...(cache === undefined ? [] : cacheFamilies(cache)),
      ...(cacheGuard === undefined ? [] : cacheGuardFamilies(cacheGuard)),
      ...latencyFamilies(models, config),
    ];
  }
}

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
  throw errorFor(
    "INVALID_OPTION",
    `metrics.labels: expected letters, digits and underscores, and none of ${own}, got '${name}'`,
  );
}

type MetricsFormat = "prometheus" | "openmetrics";

/** OpenMetrics for a client that names it and does not prefer `text/plain`, as Prometheus does. */
export function metricsFormat(accept: string | undefined): MetricsFormat {
  if (accept === undefined) return "prometheus";
  let [openMetrics, text] = [0, 0];
  for (const range of accept.toLowerCase().split(",")) {
    const [type, ...parameters] = range.split(";").map((part) => part.trim());
    const weight = quality(parameters);
    if (type === "application/openmetrics-text") {
      const version = parameters.find((one) => one.startsWith("version="))?.slice("version=".length);
      if (version === undefined || /^"?1\./.test(version)) openMetrics = Math.max(openMetrics, weight);
    } else if (type === "text/plain") text = Math.max(text, weight);
  }
  return openMetrics > 0 && openMetrics >= text ? "openmetrics" : "prometheus";
}

function quality(parameters: readonly string[]): number {
  const given = parameters.find((one) => one.startsWith("q="));
  const weight = given === undefined ? 1 : Number(given.slice(2));
  return weight >= 0 && weight <= 1 ? weight : 0;
}

const OPEN_METRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8";

interface ReadFamily {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly values: readonly ReadSeries[];
}

interface ReadSeries {
  readonly labels: Readonly<Record<string, string | number | undefined>>;
  readonly value: number;
  readonly metricName?: string | undefined;
  readonly exemplar?: (Omit<Exemplar, "labelSet"> & { readonly labelSet?: SeriesLabels }) | null | undefined;
}

const TOTAL = "_total";

/**
 * Writes families in the OpenMetrics format. All series have the same names as in Prometheus' text format: this format
 * wants counters to end with `_total`, so Triton's counters, whose names do not, are of the type `unknown`.
 */
function openMetricsText(families: readonly ReadFamily[]): string {
  const lines = families.flatMap(familyLines);
  return `${[...lines, "# EOF"].join("\n")}\n`;
}

function familyLines({ name, help, type, values }: ReadFamily): string[] {
  const isCounter = type === "counter" && name.endsWith(TOTAL);
  const familyName = isCounter ? name.slice(0, -TOTAL.length) : name;
  const takesExemplars = isCounter || type === "histogram";
  return [
    `# HELP ${familyName} ${escaped(help)}`,
    `# TYPE ${familyName} ${isCounter || type !== "counter" ? type : "unknown"}`,
    ...values.map((series) => seriesLine(name, series, takesExemplars)),
  ];
}

function seriesLine(
  name: string,
  { metricName = name, labels, value, exemplar }: ReadSeries,
  takesExemplars: boolean,
): string {
  const line = `${metricName}${labelSet(labels)} ${number(value)}`;
  if (!takesExemplars || exemplar === undefined || exemplar === null) return line;
  const { labelSet: about = {}, value: observed, timestamp } = exemplar;
  return `${line} # ${labelSet(about) || "{}"} ${number(observed)} ${timestamp}`;
}

function labelSet(labels: ReadSeries["labels"]): string {
  const pairs = Object.entries(labels).flatMap(([key, value]) =>
    value === undefined ? [] : [`${key}="${escaped(String(value))}"`],
  );
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function number(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');
}
