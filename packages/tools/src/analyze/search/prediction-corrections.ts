import type { AnalyzeFigures, LevelRun, MetricTag, ModelRun } from "../figures.js";
import type { MachineSetting } from "./duration-model.js";

interface RunPair {
  readonly measured: ModelRun;
  readonly simulated: ModelRun;
}

/** How far the simulation is off, learned from real runs: a factor for each metric and setting of the machine. */
export class PredictionCorrections {
  readonly #pairs = new Map<string, RunPair[]>();
  readonly #memory = new Map<string, number>();

  /** Adds a real run and the simulation of the same configuration and load. */
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
      const factor = (tag: MetricTag) => run.figures[tag] * factorOf(pairs, tag);
      const figures: AnalyzeFigures = {
        perf_throughput: factor("perf_throughput"),
        perf_latency_avg: factor("perf_latency_avg"),
        perf_latency_p90: factor("perf_latency_p90"),
        perf_latency_p95: factor("perf_latency_p95"),
        perf_latency_p99: factor("perf_latency_p99"),
        cpu_used_ram: memory,
      };
      return [model, { ...run, figures }] as const;
    });
    return { level, models: Object.fromEntries(corrected) };
  }
}

/** A text that is equal for equal settings. */
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
