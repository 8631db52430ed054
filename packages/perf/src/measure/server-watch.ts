import type { Duration } from "@tritonjs/protocol";
import { isUnknownToServer, type ServerCalls } from "../target/read-model.js";

/** Counters of all watched models at one time, by the name of the model. */
export type CounterSnapshot = ReadonlyMap<string, readonly ModelCounters[]>;

/** The measured model, with the models of its steps. */
interface WatchedModel extends ModelName {
  readonly steps: readonly WatchedModel[];
}

/** Looks at the counters of a model, and of the models of its steps where it is an ensemble. */
export class ServerWatch {
  /** Warnings about versions, once each. */
  readonly warnings = new Set<string>();

  private constructor(
    private readonly view: ServerView,
    private readonly model: WatchedModel,
  ) {}

  /** Undefined when the server has no statistics. */
  static async open(
    view: ServerView,
    model: ModelName,
    called: readonly ModelName[] = [],
  ): Promise<ServerWatch | undefined> {
    if (!(await view.extensions()).includes("statistics")) return undefined;
    const watched = await withSteps(view, model, new Set());
    const others = called.map((one) => ({ ...one, steps: [] }));
    return new ServerWatch(view, { ...watched, steps: [...watched.steps, ...others] });
  }

  async look(): Promise<CounterSnapshot> {
    const snapshot = new Map<string, readonly ModelCounters[]>();
    for (const model of flat(this.model)) {
      if (!snapshot.has(keyOf(model))) snapshot.set(keyOf(model), await this.view.counters(model));
    }
    return snapshot;
  }

  /** Figures of the models between two looks; undefined when the measured model has no counters. */
  difference(before: CounterSnapshot, after: CounterSnapshot): ServerFigures | undefined {
    return this.#differenceOf(this.model, before, after);
  }

  #differenceOf(
    model: WatchedModel,
    before: CounterSnapshot,
    after: CounterSnapshot,
  ): ServerFigures | undefined {
    const earlier = before.get(keyOf(model)) ?? [];
    const found = (after.get(keyOf(model)) ?? [])
      .map((counters) =>
        counterDifference(
          earlier.find(({ version }) => version === counters.version),
          counters,
        ),
      )
      .sort((a, b) => Number(b.version) - Number(a.version));
    const active = found.filter(({ stages }) => stages.queue.count + stages.success.count > 0);
    if (active.length > 1) {
      this.warnings.add(
        `Several versions of model '${model.name}' answered requests; the report shows version ${active[0]!.version}.`,
      );
    }
    const chosen = active[0] ?? found[0];
    if (chosen === undefined) return undefined;
    const composing = model.steps.flatMap((step) => this.#differenceOf(step, before, after) ?? []);
    return { ...chosen, composing };
  }
}

async function withSteps(
  view: ServerView,
  model: ModelName,
  above: ReadonlySet<string>,
): Promise<WatchedModel> {
  const path = new Set([...above, model.name]);
  const steps = new Map<string, WatchedModel>();
  for (const step of await stepsOf(view, model)) {
    if (path.has(step.name) || steps.has(keyOf(step))) continue;
    steps.set(keyOf(step), await withSteps(view, step, path));
  }
  return { name: model.name, version: model.version, steps: [...steps.values()] };
}

/** Servers with statistics may lack the configuration of models, and then have no ensembles either. */
async function stepsOf(view: ServerView, model: ModelName): Promise<ModelName[]> {
  try {
    return await view.steps(model);
  } catch (error) {
    if (isUnknownToServer(error)) return [];
    throw error;
  }
}

function flat(model: WatchedModel): WatchedModel[] {
  return [model, ...model.steps.flatMap(flat)];
}

const keyOf = ({ name, version }: ModelName) => `${name}:${version}`;

export interface ServerFigures {
  readonly name: string;
  readonly version: string;
  /** Rows that were inferred, and executions of the model. */
  readonly inferenceCount: number;
  readonly executionCount: number;
  readonly stages: Readonly<Record<ServerStage, Duration>>;
  readonly batches: readonly { readonly batchSize: number; readonly count: number }[];
  /** Batches by the reason why they were cut, where the server tells. */
  readonly cuts?: Readonly<Record<string, number>>;
  readonly composing: readonly ServerFigures[];
}

export function stageMs(figures: ServerFigures, stage: ServerStage): number {
  const { count } = figures.stages.success;
  return count === 0 ? 0 : figures.stages[stage].ns / count / 1e6;
}

/** Mean time in the model, with its inputs and outputs, in milliseconds. */
export function computeMs(figures: ServerFigures): number {
  return (
    stageMs(figures, "computeInput") + stageMs(figures, "computeInfer") + stageMs(figures, "computeOutput")
  );
}

/** Mean time in the server outside its queue, its cache and the model, in milliseconds. */
export function overheadMs(figures: ServerFigures): number {
  const cacheMs = stageMs(figures, "cacheHit") + stageMs(figures, "cacheMiss");
  const knownMs = stageMs(figures, "queue") + computeMs(figures) + cacheMs;
  return Math.max(0, stageMs(figures, "success") - knownMs);
}

export function usesCache({ stages }: ServerFigures): boolean {
  return stages.cacheHit.count + stages.cacheMiss.count > 0;
}

/** Difference of the counters of one model version. Counters that a reload has reset count from zero. */
function counterDifference(before: ModelCounters | undefined, after: ModelCounters): ServerFigures {
  const reset = before !== undefined && before.stages.success.count > after.stages.success.count;
  const from = reset ? undefined : before;
  const batches = [...after.batches]
    .map(([batchSize, count]) => ({ batchSize, count: count - (from?.batches.get(batchSize) ?? 0) }))
    .filter(({ count }) => count > 0)
    .sort((a, b) => a.batchSize - b.batchSize);
  return {
    name: after.name,
    version: after.version,
    inferenceCount: after.inferenceCount - (from?.inferenceCount ?? 0),
    executionCount: after.executionCount - (from?.executionCount ?? 0),
    stages: eachStage((stage) => minus(after.stages[stage], from?.stages[stage])),
    batches,
    composing: [],
  };
}

function minus(after: Duration, before: Duration = { count: 0, ns: 0 }): Duration {
  return { count: after.count - before.count, ns: after.ns - before.ns };
}

/** Durations of the statistics extension, in the order of a request's way. */
export const SERVER_STAGES = [
  "success",
  "fail",
  "queue",
  "computeInput",
  "computeInfer",
  "computeOutput",
  "cacheHit",
  "cacheMiss",
] as const;

type ServerStage = (typeof SERVER_STAGES)[number];

export interface ModelCounters {
  readonly name: string;
  readonly version: string;
  readonly inferenceCount: number;
  readonly executionCount: number;
  readonly stages: Readonly<Record<ServerStage, Readonly<Duration>>>;
  readonly batches: ReadonlyMap<number, number>;
}

export interface ModelName {
  readonly name: string;
  /** Empty for the latest version. */
  readonly version: string;
}

export interface ServerView {
  extensions(): Promise<readonly string[]>;
  steps(model: ModelName): Promise<ModelName[]>;
  counters(model: ModelName): Promise<ModelCounters[]>;
  close?(): void;
}

/** Asks the server of a target, which is closed with the view. */
export class CallsView implements ServerView {
  constructor(private readonly calls: ServerCalls) {}

  async extensions(): Promise<readonly string[]> {
    return this.calls.extensions();
  }

  async steps({ name, version }: ModelName): Promise<ModelName[]> {
    const { ensembleScheduling } = await this.calls.modelConfig(name, version);
    return (ensembleScheduling?.step ?? []).map((step) => {
      // The version -1 of a step is the latest.
      const number = Number(step.modelVersion ?? -1);
      return { name: step.modelName, version: number > 0 ? String(number) : "" };
    });
  }

  async counters({ name, version }: ModelName): Promise<ModelCounters[]> {
    const reports = await this.calls.statistics(name, version);
    return reports.map((report) => ({
      name: report.name,
      version: String(report.version),
      inferenceCount: Number(report.inferenceCount ?? 0),
      executionCount: Number(report.executionCount ?? 0),
      stages: eachStage((stage) => plain(report.inferenceStats?.[stage])),
      batches: new Map(
        (report.batchStats ?? []).map(({ batchSize, computeInfer }) => [
          Number(batchSize),
          plain(computeInfer).count,
        ]),
      ),
    }));
  }

  close(): void {
    this.calls.close();
  }
}

const eachStage = (durationOf: (stage: ServerStage) => Duration) =>
  Object.fromEntries(SERVER_STAGES.map((stage) => [stage, durationOf(stage)])) as Record<
    ServerStage,
    Duration
  >;

/** Numbers of 64 bits may arrive as other types than numbers. */
function plain(duration: Duration | null | undefined): Duration {
  return { count: Number(duration?.count ?? 0), ns: Number(duration?.ns ?? 0) };
}

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
