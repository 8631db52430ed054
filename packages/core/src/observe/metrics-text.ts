import type { Registry } from "prom-client";
import { type Exemplar, isReported, readForPage, type SeriesLabels } from "./metric-families.js";

export type MetricsFormat = "prometheus" | "openmetrics";

/** Milliseconds that a page takes of one turn of the event loop. */
const SHARE_MS = 5;
/** Series after which the time is looked at. */
const SERIES_PER_LOOK = 32;
/** Series from which a page is long: those of about 200 models. */
const LONG_SERIES = 10_000;
/** Characters from which lines become a piece of the page. */
const PIECE_LENGTH = 64 * 1024;

/** A page while it is written. */
export interface WrittenText {
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
export async function writeText(registries: readonly Registry[], about: WrittenText): Promise<Uint8Array[]> {
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
