import type { ModelConfig } from "@tritonjs/protocol";
import { Random } from "../data/random.js";
import { exactFigures } from "../measure/distribution.js";
import {
  type ClosedLoop,
  type SimulatedRequest,
  type SimulationResult,
  simulate,
} from "../simulate/simulate.js";
import {
  type AnalyzeFigures,
  type AnalyzeLevel,
  eachMetric,
  type LevelRun,
  type MetricTag,
  type ModelRun,
} from "./candidate.js";

/** Requests of a simulation: enough for a p99, and for each client to come several times. */
const REQUESTS = { least: 400, perClient: 8, most: 6000, scheduled: 1000 } as const;

interface SimulatedLoadOptions {
  readonly config: ModelConfig;
  readonly level: AnalyzeLevel;
  readonly rows: number;
  readonly duration: (rows: number) => number;
  readonly signal: AbortSignal;
}

/** Runs a load through the project's scheduler on a virtual clock. The memory is not simulated. */
export async function simulateLoad(options: SimulatedLoadOptions): Promise<ModelRun> {
  const { config, level, rows, duration, signal } = options;
  const result = await simulate({
    config,
    requests: requestsOf(level, rows),
    times: { duration, gapMs: 0, wakeMs: 0 },
    signal,
  });
  const warmUp = level.mode === "concurrency" ? level.value : 0;
  const [failureText] = result.failures.keys();
  return {
    figures: figuresOf(result, warmUp, rows),
    meanRows: result.batches.reduce((sum, batch) => sum + batch.rows, 0) / Math.max(1, result.batches.length),
    failures: [...result.failures.values()].reduce((sum, count) => sum + count, 0),
    ...(failureText !== undefined && { failureText }),
  };
}

function requestsOf(level: AnalyzeLevel, rows: number): ClosedLoop | SimulatedRequest[] {
  if (level.mode === "concurrency") {
    const count = Math.min(REQUESTS.most, Math.max(REQUESTS.least, REQUESTS.perClient * level.value));
    return { concurrency: level.value, count: Math.max(count, 3 * level.value), rows };
  }
  const random = new Random(1);
  const gapMs = 1000 / level.value;
  const requests: SimulatedRequest[] = [];
  let atMs = 0;
  for (let i = 0; i < REQUESTS.scheduled; i++) {
    requests.push({ atMs, rows });
    atMs += level.distribution === "poisson" ? random.exponential() * gapMs : gapMs;
  }
  return requests;
}

/** Figures of the requests after the first ones of each client, which all arrive at once. */
function figuresOf({ latenciesMs, endsMs }: SimulationResult, warmUp: number, rows: number): AnalyzeFigures {
  const latencies = exactFigures(latenciesMs.subarray(warmUp));
  return {
    perf_throughput: throughputOf(endsMs, latencies.count === 0 ? 0 : warmUp, latenciesMs) * rows,
    perf_latency_avg: latencies.mean,
    perf_latency_p90: latencies.percentile(90),
    perf_latency_p95: latencies.percentile(95),
    perf_latency_p99: latencies.percentile(99),
    cpu_used_ram: Number.NaN,
  };
}

/**
 * Successful requests a second between the ends of two batches: the number of ends after a moment, divided by the time
 * since then. The last requests of a closed loop, when clients have nothing more to send, do not count.
 */
function throughputOf(endsMs: Float64Array, tail: number, latenciesMs: Float64Array): number {
  const ends = [...endsMs].filter((end, i) => !Number.isNaN(end) && !Number.isNaN(latenciesMs[i]!));
  ends.sort((a, b) => a - b);
  const from = ends[Math.min(tail, ends.length - 1)];
  const to = ends[Math.max(0, ends.length - 1 - tail)];
  if (from === undefined || to === undefined || !(to > from)) {
    const last = ends.at(-1);
    return last === undefined || last === 0 ? 0 : (ends.length * 1000) / last;
  }
  const count = ends.filter((end) => end > from && end <= to).length;
  return (count * 1000) / (to - from);
}

export interface MachineSetting {
  readonly instances: number;
  readonly isolation: string;
  readonly threads: number;
}

interface Point {
  readonly rows: number;
  readonly ms: number;
}

/**
 * Durations of batches `t(rows)` for each setting of the machine, from a few measured points. Between sizes the
 * duration is linear. A setting with few points has the shape of the one with most. Between measured numbers of
 * instances the duration is linear too. An isolation that was measured with one setting only differs from the first
 * isolation by the same factor with all settings.
 */
export class DurationModel {
  readonly #points = new Map<string, { readonly setting: MachineSetting; readonly points: Point[] }>();

  add(setting: MachineSetting, rows: number, ms: number): void {
    const key = settingKey(setting);
    let entry = this.#points.get(key);
    if (entry === undefined) {
      entry = { setting, points: [] };
      this.#points.set(key, entry);
    }
    entry.points.push({ rows, ms });
    entry.points.sort((a, b) => a.rows - b.rows);
  }

  /** Milliseconds of a batch; NaN if neither these threads nor this isolation were measured. */
  duration(setting: MachineSetting, rows: number): number {
    const [first] = this.#points.values();
    const own = [...this.#points.values()].filter((one) => one.setting.isolation === setting.isolation);
    const isFirst = first?.setting.isolation === setting.isolation;
    if (own.length !== 1 || isFirst) return this.#between(setting, rows);
    const [known] = own;
    const usual = (other: MachineSetting) =>
      this.#between({ ...other, isolation: first!.setting.isolation }, rows);
    return (usual(setting) * this.#at(known!.points, rows)) / usual(known!.setting);
  }

  /** NaN if no setting with these threads and this isolation was measured. */
  #between(setting: MachineSetting, rows: number): number {
    const alike = [...this.#points.values()]
      .filter((one) => one.setting.isolation === setting.isolation && one.setting.threads === setting.threads)
      .toSorted((a, b) => a.setting.instances - b.setting.instances);
    if (alike.length === 0) return Number.NaN;
    const after = alike.findIndex((one) => one.setting.instances >= setting.instances);
    const high = alike[after === -1 ? alike.length - 1 : after]!;
    if (high.setting.instances === setting.instances || after <= 0) return this.#at(high.points, rows);
    const low = alike[after - 1]!;
    const share =
      (setting.instances - low.setting.instances) / (high.setting.instances - low.setting.instances);
    return (1 - share) * this.#at(low.points, rows) + share * this.#at(high.points, rows);
  }

  #at(points: readonly Point[], rows: number): number {
    const shape = this.#richest();
    if (shape === points || points.length >= shape.length) return linear(points, rows);
    // The ratio to the shape is linear in the rows.
    const ratios = points.map((point) => ({ rows: point.rows, ms: point.ms / linear(shape, point.rows) }));
    return linear(shape, rows) * flat(ratios, rows);
  }

  #richest(): readonly Point[] {
    let richest: readonly Point[] = [];
    for (const { points } of this.#points.values()) if (points.length > richest.length) richest = points;
    return richest;
  }
}

/** Linear between the points, with the slope of the outer ones beyond them; never below half of the nearest point. */
function linear(points: readonly Point[], rows: number): number {
  const [first] = points;
  if (points.length === 1) return first!.ms;
  const after = points.findIndex((point) => point.rows >= rows);
  const high = Math.max(1, after === -1 ? points.length - 1 : after);
  const [a, b] = [points[high - 1]!, points[high]!];
  if (b.rows === a.rows) return (a.ms + b.ms) / 2;
  const value = a.ms + ((b.ms - a.ms) * (rows - a.rows)) / (b.rows - a.rows);
  return Math.max(value, Math.min(a.ms, b.ms) / 2);
}

/** Linear between the points, and constant beyond them. */
function flat(points: readonly Point[], rows: number): number {
  const [first, last] = [points[0]!, points.at(-1)!];
  if (rows <= first.rows) return first.ms;
  return rows >= last.rows ? last.ms : linear(points, rows);
}

interface RunPair {
  readonly measured: ModelRun;
  readonly simulated: ModelRun;
}

/** How far the simulation is off, learned from real runs: a factor for each metric and setting of the machine. */
export class PredictionCorrections {
  readonly #pairs = new Map<string, RunPair[]>();
  readonly #memory = new Map<string, number>();

  add(setting: MachineSetting, measured: ModelRun, simulated: ModelRun): void {
    const key = settingKey(setting);
    this.#pairs.set(key, [...(this.#pairs.get(key) ?? []), { measured, simulated }]);
    this.#memory.set(key, Math.max(this.#memory.get(key) ?? 0, measured.figures.cpu_used_ram));
  }

  /** A simulated run with corrected figures. The memory is that of the real runs. */
  correct(setting: MachineSetting, { level, models }: LevelRun): LevelRun {
    const pairs = this.#pairs.get(settingKey(setting)) ?? [...this.#pairs.values()].flat();
    const memory = this.#memory.get(settingKey(setting)) ?? Math.max(0, ...this.#memory.values());
    const corrected = Object.entries(models).map(([model, run]) => {
      const figures = eachMetric((tag) =>
        tag === "cpu_used_ram" ? memory : run.figures[tag] * factorOf(pairs, tag),
      );
      return [model, { ...run, figures }] as const;
    });
    return { level, models: Object.fromEntries(corrected) };
  }
}

export function settingKey({ instances, isolation, threads }: MachineSetting): string {
  return `${instances}/${isolation}/${threads}`;
}

/** Geometric mean of measured over simulated values; 1 without a pair that has both. */
function factorOf(pairs: readonly RunPair[], tag: MetricTag): number {
  const logs = pairs
    .map(({ measured, simulated }) => Math.log(measured.figures[tag] / simulated.figures[tag]))
    .filter(Number.isFinite);
  return logs.length === 0 ? 1 : Math.exp(logs.reduce((sum, log) => sum + log, 0) / logs.length);
}
