import { errorFor, optionTypes } from "@tritonjs/protocol";
import type { Registry } from "prom-client";
import type { Gpus } from "../config/gpus.js";
import { MachineMetrics, ProcessMetrics } from "./machine-metrics.js";
import {
  type CollectedFamily,
  DEFAULT_METRICS_CONFIG,
  type Exemplar,
  isReported,
  type MetricsConfig,
  promClient,
  readForPage,
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
  modelFamilies,
  traceFamilies,
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
  /** The GPUs, whose pinned memory is shown. @default none */
  readonly gpus?: Gpus | undefined;
  readonly metricsConfig?: MetricsConfig | undefined;
  /** Traces and spans, of which some may be lost. */
  readonly tracing?: { readonly lost: number } | undefined;
  /** Usage of the response cache. @default no metrics of it */
  readonly cache?: (() => CacheUsage | undefined) | undefined;
  /** Whether the response cache answers. @default no metrics of it */
  readonly cacheGuard?: MeteredCache | undefined;
  /** Metrics of extensions. @default none */
  readonly extensions?: () => readonly CollectedFamily[];
}

/** The metrics page in the format that its client wants. */
export interface MetricsText {
  /** Media type of the text. */
  readonly type: string;
  /** The text in UTF-8, in pieces. */
  readonly body: readonly Uint8Array[];
}

const TYPES: Readonly<Record<MetricsFormat, string>> = {
  prometheus: "text/plain; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

/** Milliseconds for which a long page is kept. */
const KEPT_MS = 1000;

/** A page that is being written, or was written lately. */
interface LatePage {
  readonly text: Promise<MetricsText>;
  /** Whether it has thousands of series. */
  isLong: boolean;
  /** Time at which it was complete. */
  doneAt: number;
}

/** The metrics of a server, in a registry and as a page in Prometheus' text format or in the OpenMetrics format. */
export class MetricsPage {
  readonly #process = new ProcessMetrics();
  #processRegistry: Registry | undefined;
  #registry: Registry | undefined;
  #stopReporting: (() => void) | undefined;
  readonly #removals: (() => void)[] = [];
  /** Families that were added before the registry was made. */
  #added: readonly CollectedFamily[] = [];
  readonly #late = new Map<MetricsFormat, LatePage>();

  /** The models of the page that is being written. */
  #models: readonly MeteredModel[] | undefined;

  /**
   * @param now monotonic time in milliseconds
   * @throws TritonError INVALID_ARG for a label that metrics cannot have
   */
  constructor(
    private readonly sources: MetricsSources,
    private readonly options: MetricsReportOptions = {},
    private readonly now: () => number = () => performance.now(),
  ) {
    for (const name of Object.keys(options.labels ?? {})) assertLabel(name);
  }

  /** The registry with the metrics of the server, the models, and the program. It is made when it is first used. */
  get registry(): Registry {
    if (this.#registry === undefined) {
      this.#registry = this.options.registry ?? new (promClient().Registry)();
      const families = [...this.#families(), ...this.#added];
      this.#stopReporting = reportTo(this.#registry, families, this.options.labels);
    }
    return this.#registry;
  }

  /** @throws TritonError ALREADY_EXISTS if the metrics cannot be added to the registry of the program. */
  open(): void {
    if (this.options.registry !== undefined) void this.registry;
  }

  /** Makes the registries, for which `prom-client` is loaded. */
  prepare(): void {
    void this.registry;
    this.#furtherRegistry();
  }

  /** Adds metrics of a part that not every server has. */
  add(families: readonly CollectedFamily[]): void {
    if (this.#registry === undefined) this.#added = [...this.#added, ...families];
    else this.#removals.push(reportTo(this.#registry, families, this.options.labels));
  }

  /** Removes the metrics from the registry of the program. */
  close(): void {
    for (const remove of this.#removals) remove();
    if (this.options.registry !== undefined) this.#stopReporting?.();
    this.#process.close();
  }

  /**
   * The whole registry as text, in the format that the client accepts. A page of thousands of series serves all
   * clients that ask while it is written, or within a second after it.
   */
  async writeFor(accept: string | undefined): Promise<MetricsText> {
    const { registry } = this;
    if (registry.contentType.startsWith("application/openmetrics-text")) {
      return { type: TYPES.openmetrics, body: [Buffer.from(await registry.metrics())] };
    }
    return this.#page(metricsFormat(accept));
  }

  /** The whole registry as text. In a registry of its own, families without a value are left out, as in Triton. */
  async write(): Promise<string> {
    const { body } = await this.writeFor(undefined);
    return Buffer.concat(body).toString();
  }

  #page(format: MetricsFormat): Promise<MetricsText> {
    const late = this.#late.get(format);
    if (late?.isLong && this.now() - late.doneAt < KEPT_MS) return late.text;
    const page: LatePage = {
      text: this.#writePage(format, () => {
        page.isLong = true;
      }).finally(() => {
        page.doneAt = this.now();
      }),
      isLong: false,
      doneAt: Number.POSITIVE_INFINITY,
    };
    this.#late.set(format, page);
    return page.text;
  }

  async #writePage(format: MetricsFormat, onLong: () => void): Promise<MetricsText> {
    const further = this.#furtherRegistry();
    const registries = [this.registry, ...(further === undefined ? [] : [further])];
    const hidesEmpty = this.options.registry === undefined;
    // Each family asks for the models. To list thousands of them takes a millisecond.
    this.#models = this.sources.models();
    try {
      const body = await writeText(registries, { format, hidesEmpty, onLong, now: this.now });
      return { type: TYPES[format], body };
    } finally {
      this.#models = undefined;
    }
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
    const { allowCpuMetrics = true, metricsConfig, gpus, cache, cacheGuard, tracing } = this.sources;
    const models = () => this.#models ?? this.sources.models();
    const config = { ...DEFAULT_METRICS_CONFIG, ...metricsConfig };
    return [
      ...modelFamilies(models, config),
      ...(tracing === undefined ? [] : traceFamilies(tracing)),
      ...(this.sources.extensions?.() ?? []),
      ...(allowCpuMetrics ? new MachineMetrics(gpus).families() : []),
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

type MetricsFormat = "prometheus" | "openmetrics";

/** Milliseconds that a page takes of one turn of the event loop. */
const SHARE_MS = 5;
/** Series after which the time is looked at. */
const SERIES_PER_LOOK = 32;
/** Series from which a page is long: those of about 200 models. */
const LONG_SERIES = 10_000;
/** Characters from which lines become a piece of the page. */
const PIECE_LENGTH = 64 * 1024;

/** A page while it is written. */
interface WrittenText {
  /** Families without a value are left out. */
  readonly hidesEmpty: boolean;
  readonly format: MetricsFormat;
  /**
   * Called once if the page has so many series that it takes several turns of the event loop on any machine. A time would
   * not do: on a busy machine a short page may pause too.
   */
  readonly onLong: () => void;
  /** Monotonic time in milliseconds. */
  readonly now: () => number;
}

/**
 * Writes all families of registries in the text format of Prometheus or of OpenMetrics. A long page is written in turns
 * of the event loop, a few milliseconds each, so that requests do not wait for it. Its values are then from different
 * moments; those of one histogram are from the same.
 *
 * In the OpenMetrics format all series have the same names as in Prometheus' format. That format wants counters to end
 * with `_total`, so Triton's counters, whose names do not, are of the type `unknown`.
 *
 * @param registries a family that several have comes from the first of them
 * @returns the pieces of the page
 */
async function writeText(registries: readonly Registry[], about: WrittenText): Promise<Uint8Array[]> {
  const text = new PageText(about);
  const written = new Set<string>();
  for (const registry of registries) {
    const families = (await readForPage(() => registry.getMetricsAsJSON())) as unknown as ReadFamily[];
    for (const family of families.filter(({ name }) => !written.has(name))) {
      written.add(family.name);
      const metric: unknown = registry.getSingleMetric(family.name);
      const reported = isReported(metric) ? metric : undefined;
      text.begin(family, reported !== undefined && about.hidesEmpty);
      if (reported === undefined) await text.addAll(family.values);
      // The registry has added its own labels to the one series of a reported family.
      else
        for (const { family: own, labels } of reported.sources.values())
          await text.addAll(await own.collect(), labels, family.values[0]?.labels);
    }
  }
  return text.end();
}

interface ReadFamily {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly values: readonly ReadSeries[];
}

interface ReadSeries {
  readonly labels?: ReadLabels;
  readonly value: number;
  readonly metricName?: string | undefined;
  readonly exemplar?: (Omit<Exemplar, "labelSet"> & { readonly labelSet?: SeriesLabels }) | null | undefined;
}

type ReadLabels = Readonly<Record<string, string | number | undefined>>;

const NO_LABELS: ReadLabels = {};
const TOTAL = "_total";

class PageText {
  readonly #pieces: Uint8Array[] = [];
  readonly #isOpen: boolean;
  /** Lines that are in no piece yet. */
  #text = "";
  /** The first lines of a family, until they are written. */
  #head = "";
  #name = "";
  #takesExemplars = false;
  #series = 0;
  #until: number;

  constructor(private readonly about: WrittenText) {
    this.#until = about.now() + SHARE_MS;
    this.#isOpen = about.format === "openmetrics";
  }

  begin({ name, help, type }: ReadFamily, hidesEmpty: boolean): void {
    const isCounter = type === "counter" && name.endsWith(TOTAL);
    const familyName = this.#isOpen && isCounter ? name.slice(0, -TOTAL.length) : name;
    const shownType = this.#isOpen && type === "counter" && !isCounter ? "unknown" : type;
    const helpText = this.#isOpen ? escaped(help) : escapedHelp(help);
    this.#name = name;
    this.#takesExemplars = this.#isOpen && (isCounter || type === "histogram");
    this.#head = `# HELP ${familyName} ${helpText}\n# TYPE ${familyName} ${shownType}\n`;
    if (!hidesEmpty) this.#writeHead();
  }

  /**
   * Adds series of the family.
   *
   * @param before labels that each series gets before its own, which win
   * @param after labels that each series gets after them
   */
  async addAll(series: Iterable<ReadSeries>, before = NO_LABELS, after = NO_LABELS): Promise<void> {
    const isBare = isEmpty(before) && isEmpty(after);
    for (const one of series) {
      const { labels: own = NO_LABELS } = one;
      this.#add(one, isBare ? own : { ...before, ...own, ...after, ...own });
      if (++this.#series === LONG_SERIES) this.about.onLong();
      if (this.#series % SERIES_PER_LOOK === 0) await this.#look();
    }
  }

  #add({ metricName = this.#name, value, exemplar }: ReadSeries, labels: ReadLabels): void {
    this.#writeHead();
    this.#text += `${metricName}${labelSet(labels)} ${this.#number(value)}`;
    if (this.#takesExemplars && exemplar !== undefined && exemplar !== null) {
      const { labelSet: about = NO_LABELS, value: observed, timestamp } = exemplar;
      this.#text += ` # ${labelSet(about) || "{}"} ${this.#number(observed)} ${timestamp}`;
    }
    this.#text += "\n";
  }

  end(): Uint8Array[] {
    if (this.#isOpen) this.#text += "# EOF\n";
    this.#cut();
    return this.#pieces;
  }

  #writeHead(): void {
    if (this.#head === "") return;
    // Families of Prometheus' format have an empty line between them.
    const isFirst = this.#text === "" && this.#pieces.length === 0;
    this.#text += this.#isOpen || isFirst ? this.#head : `\n${this.#head}`;
    this.#head = "";
  }

  #look(): Promise<void> | undefined {
    if (this.#text.length >= PIECE_LENGTH) this.#cut();
    if (this.about.now() < this.#until) return undefined;
    return new Promise((resolve) => {
      setImmediate(() => {
        this.#until = this.about.now() + SHARE_MS;
        resolve();
      });
    });
  }

  #cut(): void {
    this.#pieces.push(Buffer.from(this.#text));
    this.#text = "";
  }

  #number(value: number): string {
    if (Number.isFinite(value)) return String(value);
    // prom-client and Triton write `Nan` in Prometheus' format.
    if (Number.isNaN(value)) return this.#isOpen ? "NaN" : "Nan";
    return value > 0 ? "+Inf" : "-Inf";
  }
}

function isEmpty(labels: ReadLabels): boolean {
  return Object.keys(labels).length === 0;
}

function labelSet(labels: ReadLabels): string {
  let text = "";
  for (const name in labels) {
    const value = labels[name];
    if (value === undefined) continue;
    text += `${text === "" ? "{" : ","}${name}="${typeof value === "number" ? value : escaped(value)}"`;
  }
  return text === "" ? "" : `${text}}`;
}

function escaped(text: string): string {
  return /[\\\n"]/.test(text) ? escapedHelp(text).replaceAll('"', '\\"') : text;
}

function escapedHelp(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}
