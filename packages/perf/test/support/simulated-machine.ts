import { type ModelConfig, TritonError } from "@tritonjs/protocol";
import { readPrototxt } from "@tritonjs/repository/config";
import { Analysis } from "../../src/analyze/analysis.js";
import type {
  AnalyzeLevel,
  AnalyzeMachine,
  LevelRun,
  ModelRun,
  OpenedCandidate,
} from "../../src/analyze/candidate.js";
import { type Candidate, type VariantParameters, variantConfig } from "../../src/analyze/candidate.js";
import { simulateLoad } from "../../src/analyze/simulated-candidate.js";

/** Milliseconds of a batch on the simulated machine. */
export type DurationRule = (rows: number, parameters: VariantParameters) => number;

/** A batch costs 4 ms and 1 ms for each row; a second instance slows both down by 40%, further ones by 100% each. */
export const sharedCores: DurationRule = (rows, { instances = 1 }) =>
  (4 + rows) * (instances === 1 ? 1 : 1.4 + (instances - 2));

/** Runs of each rule, which are the same for the same configuration and level. */
const runs = new WeakMap<DurationRule, Map<string, ModelRun>>();

/** A machine on a virtual clock: the project's scheduler with known durations. */
export class SimulatedMachine implements AnalyzeMachine {
  readonly configs: Readonly<Record<string, ModelConfig>>;
  readonly loaded: readonly string[];
  readonly batchSize = 1;
  /** Candidates that were opened, in order. */
  readonly opened: Candidate[] = [];
  /** Number of measured levels. Those of turns are whole once all their turns are over. */
  get measured(): number {
    return Math.floor(this.#measured + 1e-6);
  }
  #measured = 0;
  readonly #duration: DurationRule;
  /** Called before each measurement, with its number. */
  onMeasure: (count: number) => void = () => {};
  /** Factor of the throughput of a measurement, or of a share of one; latencies are divided by it. */
  noise: (candidate: Candidate, share: number) => number = () => 1;
  /** Error of a candidate that cannot be loaded. */
  faultOf: (candidate: Candidate) => string | undefined = () => undefined;

  constructor(
    duration: DurationRule = sharedCores,
    models: readonly string[] = ["m"],
    text = "max_batch_size: 4 instance_group { count: 1 } dynamic_batching { }",
  ) {
    this.#duration = duration;
    this.loaded = models;
    this.configs = Object.fromEntries(
      models.map((name) => [name, readPrototxt(`name: "${name}" backend: "x" ${text}`)]),
    );
  }

  async open(candidate: Candidate): Promise<OpenedCandidate> {
    this.opened.push(candidate);
    const fault = this.faultOf(candidate);
    if (fault !== undefined) throw new TritonError("INVALID_ARG", fault);
    return {
      measure: (level, signal, share) => this.#measure(candidate, level, signal, share),
      close: async () => {},
    };
  }

  async close(): Promise<void> {}

  async #measure(
    candidate: Candidate,
    level: AnalyzeLevel,
    signal: AbortSignal,
    share = 1,
  ): Promise<LevelRun> {
    const factor = this.noise(candidate, share);
    // The first turn does not count.
    if (share > 0.1) this.#measured += share;
    this.onMeasure(this.measured);
    const models: Record<string, LevelRun["models"][string]> = {};
    for (const model of this.loaded) {
      const parameters = candidate[model] ?? {};
      const run = await this.#run(model, parameters, level, signal);
      const { figures } = run;
      const perf_throughput = figures.perf_throughput * factor;
      models[model] = {
        ...run,
        batchesPerSecond: perf_throughput / run.meanRows!,
        figures: {
          perf_throughput,
          perf_latency_avg: figures.perf_latency_avg / factor,
          perf_latency_p90: figures.perf_latency_p90 / factor,
          perf_latency_p95: figures.perf_latency_p95 / factor,
          perf_latency_p99: figures.perf_latency_p99 / factor,
          cpu_used_ram: 100 + 50 * (parameters.instances ?? 1),
        },
      };
    }
    return { level, models };
  }

  async #run(
    model: string,
    parameters: VariantParameters,
    level: AnalyzeLevel,
    signal: AbortSignal,
  ): Promise<ModelRun> {
    const config = variantConfig(this.configs[model]!, parameters);
    const key = JSON.stringify([config, parameters, level], (_, value) =>
      typeof value === "bigint" ? String(value) : value,
    );
    const known = runs.get(this.#duration) ?? new Map<string, ModelRun>();
    runs.set(this.#duration, known);
    const duration = (rows: number) => this.#duration(rows, parameters);
    const run = known.get(key) ?? (await simulateLoad({ config, level, rows: 1, duration, signal }));
    if (!signal.aborted) known.set(key, run);
    return run;
  }
}

/** An analysis of a machine with 16 requests in flight that looks for throughput. */
export function analysisOf(
  machine: AnalyzeMachine,
  settings: Partial<Pick<Analysis, "goal" | "load">> = {},
): Analysis {
  const throughput = {
    goal: { objectives: { perf_throughput: 1 }, constraints: {} },
    load: { kind: "levels", levels: [{ mode: "concurrency", value: 16 }] },
  } as const;
  const { signal } = new AbortController();
  return new Analysis(machine, { ...throughput, ...settings }, signal, { now: () => 0 });
}
