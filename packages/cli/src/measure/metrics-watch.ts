/** Gauges of the machine that Triton and this library show, with the unit that reports use. */
const MACHINE_GAUGES = {
  nv_gpu_utilization: { title: "GPU Utilization", merge: "mean" },
  nv_gpu_power_usage: { title: "GPU Power Usage (W)", merge: "mean" },
  nv_gpu_memory_used_bytes: { title: "Max GPU Memory Usage (bytes)", merge: "max" },
  nv_gpu_memory_total_bytes: { title: "Total GPU Memory (bytes)", merge: "max" },
  nv_cpu_utilization: { title: "CPU Utilization", merge: "mean" },
  nv_cpu_memory_used_bytes: { title: "Max CPU Memory Usage (bytes)", merge: "max" },
  nv_inference_pending_request_count: { title: "Pending Requests", merge: "mean" },
} as const satisfies Readonly<Record<string, { readonly title: string; readonly merge: "mean" | "max" }>>;

type MachineGauge = keyof typeof MACHINE_GAUGES;

const CUTS = "tritonjs_batch_cut_total";

/** Figures of the metrics pages of one level. */
export interface MetricFigures {
  readonly pages: number;
  /** Value of each gauge, by the UUID of the GPU, or by "" where the value is of the machine or of the model. */
  readonly gauges: Readonly<Partial<Record<MachineGauge, Readonly<Record<string, number>>>>>;
  /** Batches by the reason why they were cut, for each model: differences of a counter of this library's servers. */
  readonly cuts: ReadonlyMap<string, Readonly<Record<string, number>>>;
}

interface Gathered {
  sum: number;
  count: number;
  max: number;
}

/** Reads the metrics page at intervals. The memory it takes does not depend on the number of pages. */
export class MetricsWatch {
  #gauges = new Map<MachineGauge, Map<string, Gathered>>();
  #firstCuts = new Map<string, number>();
  #lastCuts = new Map<string, number>();
  #pages = 0;
  #reading: Promise<void> | undefined;
  /** The last failure to read the page. */
  failure: string | undefined;

  /**
   * @param readPage reads the metrics page
   * @param model model whose gauges are kept, besides those of the machine
   */
  constructor(
    private readonly readPage: () => Promise<string>,
    private readonly model: string,
  ) {}

  begin(): void {
    this.#gauges = new Map();
    this.#firstCuts = new Map();
    this.#pages = 0;
  }

  /** Reads the page once. A failure is kept in `failure` and does not throw. Calls that overlap read it once. */
  read(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  /** Figures of the pages since `begin`. */
  figures(): MetricFigures {
    const gauges: Partial<Record<MachineGauge, Record<string, number>>> = {};
    for (const [name, series] of this.#gauges) {
      const { merge } = MACHINE_GAUGES[name];
      gauges[name] = Object.fromEntries(
        [...series].map(([key, { sum, count, max }]) => [key, merge === "max" ? max : sum / count]),
      );
    }
    const cuts = new Map<string, Record<string, number>>();
    for (const [key, last] of this.#lastCuts) {
      const [model = "", reason = ""] = key.split("\0");
      const count = last - (this.#firstCuts.get(key) ?? 0);
      if (count <= 0) continue;
      const counts = cuts.get(model) ?? {};
      counts[reason] = count;
      cuts.set(model, counts);
    }
    return { pages: this.#pages, gauges, cuts };
  }

  async #read(): Promise<void> {
    let samples: MetricSample[];
    try {
      samples = readPrometheusText(await this.readPage());
    } catch (error) {
      this.failure = error instanceof Error ? error.message : String(error);
      return;
    }
    this.failure = undefined;
    const isFirst = this.#pages++ === 0;
    const cuts = new Map<string, number>();
    for (const { name, labels, value } of samples) {
      if (name === CUTS) {
        // Versions of a model count together.
        const key = `${labels.model}\0${labels.reason}`;
        cuts.set(key, (cuts.get(key) ?? 0) + value);
      } else if (isGauge(name) && Number.isFinite(value)) {
        if (labels.model === undefined || labels.model === this.model) {
          this.#gather(name, labels.gpu_uuid ?? "", value);
        }
      }
    }
    if (isFirst) this.#firstCuts = cuts;
    this.#lastCuts = cuts;
  }

  #gather(name: MachineGauge, key: string, value: number): void {
    let series = this.#gauges.get(name);
    if (series === undefined) {
      series = new Map();
      this.#gauges.set(name, series);
    }
    const gathered = series.get(key) ?? { sum: 0, count: 0, max: Number.NEGATIVE_INFINITY };
    gathered.sum += value;
    gathered.count++;
    gathered.max = Math.max(gathered.max, value);
    series.set(key, gathered);
  }
}

function isGauge(name: string): name is MachineGauge {
  return Object.hasOwn(MACHINE_GAUGES, name);
}

interface MetricSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*$/;
const LABEL = /([a-zA-Z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*,?\s*/gy;

/** Reads a metrics page in Prometheus' text format. Lines that are not samples are skipped. */
export function readPrometheusText(text: string): MetricSample[] {
  const samples: MetricSample[] = [];
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const match = LINE.exec(line.trimEnd());
    if (match === null) continue;
    const [, name = "", labels = "", value = ""] = match;
    samples.push({ name, labels: readLabels(labels), value: readValue(value) });
  }
  return samples;
}

function readLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [, name = "", value = ""] of text.matchAll(LABEL)) {
    labels[name] = value.replace(/\\(.)/g, (_, letter: string) => (letter === "n" ? "\n" : letter));
  }
  return labels;
}

function readValue(text: string): number {
  if (text === "+Inf" || text === "Inf") return Number.POSITIVE_INFINITY;
  return text === "-Inf" ? Number.NEGATIVE_INFINITY : Number(text);
}
