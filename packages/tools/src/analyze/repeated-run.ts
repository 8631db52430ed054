import type { CandidateResult } from "./candidate-result.js";
import type { AnalyzeFigures, LevelRun, MetricTag, ModelRun } from "./figures.js";
import { runAt } from "./level-walk.js";

/** A result with one more measurement. Its runs become the means of all of them. */
export function withRound(result: CandidateResult, round: readonly LevelRun[]): CandidateResult {
  const runs = result.runs.map((run) => {
    const other = runAt(round, run.level);
    return other === undefined ? run : meanRun(run, other);
  });
  return { ...result, runs, rounds: [...(result.rounds ?? [result.runs]), round] };
}

/** The means of the turns of one measurement. */
export function meanOfTurns(turns: readonly (readonly LevelRun[])[]): LevelRun[] {
  const [first = [], ...others] = turns;
  return first.map((run) => {
    const all = others.flatMap((turn) => runAt(turn, run.level) ?? []);
    const { measurements: _, ...mean } = all.reduce(meanRun, run);
    return mean;
  });
}

/** The first measurement of a result. */
export function firstRound({ rounds, ...rest }: CandidateResult): CandidateResult {
  return rounds === undefined ? rest : { ...rest, runs: rounds[0]! };
}

/**
 * The mean of two measurements of one level, weighted by how many measurements each stands for. The memory is the
 * larger one.
 */
export function meanRun(a: LevelRun, b: LevelRun): LevelRun {
  const [countA, countB] = [a.measurements ?? 1, b.measurements ?? 1];
  const mean = (one: number, other: number) => (countA * one + countB * other) / (countA + countB);
  const models = Object.entries(a.models).map(([name, run]): [string, ModelRun] => {
    const other = b.models[name];
    if (other === undefined) return [name, run];
    const metric = (tag: MetricTag) => mean(run.figures[tag], other.figures[tag]);
    const figures: AnalyzeFigures = {
      perf_throughput: metric("perf_throughput"),
      perf_latency_avg: metric("perf_latency_avg"),
      perf_latency_p90: metric("perf_latency_p90"),
      perf_latency_p95: metric("perf_latency_p95"),
      perf_latency_p99: metric("perf_latency_p99"),
      cpu_used_ram: Math.max(run.figures.cpu_used_ram, other.figures.cpu_used_ram),
    };
    const failureText = run.failureText ?? other.failureText;
    return [
      name,
      {
        figures,
        ...meanOf("meanRows", run, other, mean),
        ...meanOf("batchesPerSecond", run, other, mean),
        failures: run.failures + other.failures,
        ...(failureText !== undefined && { failureText }),
      },
    ];
  });
  return { level: a.level, models: Object.fromEntries(models), measurements: countA + countB };
}

function meanOf(
  name: "meanRows" | "batchesPerSecond",
  a: ModelRun,
  b: ModelRun,
  mean: (one: number, other: number) => number,
): Partial<ModelRun> {
  const [one, other] = [a[name], b[name]];
  if (one === undefined || other === undefined) return {};
  return { [name]: mean(one, other) };
}
