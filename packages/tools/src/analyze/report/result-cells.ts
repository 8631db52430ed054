import { METRICS } from "../figures.js";
import type { Breach } from "../goal.js";
import type { AnalysisOutcome, RankedResult } from "../outcome.js";
import { isMet, totalsOf } from "../outcome.js";
import { type Candidate, parametersText, variantConfig } from "../variant-parameters.js";

/** A number with about three significant digits. */
export function shortNumber(value: number): string {
  if (!Number.isFinite(value)) return "-";
  return Math.abs(value) >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
}

/** A share as a percentage with its sign. */
export function signedPercent(share: number | undefined): string {
  if (share === undefined || !Number.isFinite(share)) return "-";
  const percent = Math.round(share * 100);
  return `${percent > 0 ? "+" : ""}${percent}%`;
}

/** Throughput and p99 latency of the estimate that decides the place of a candidate, if it has one. */
export function estimateText({ estimate }: RankedResult): string {
  if (estimate === undefined) return "-";
  const { throughput, p99Ms } = totalsOf(estimate);
  return `${shortNumber(throughput)}, ${shortNumber(p99Ms)} ms`;
}

/** How much more a candidate serves than the default configuration, as a share of it. */
export function throughputGain(row: RankedResult, outcome: AnalysisOutcome): number | undefined {
  const fallback = outcome.ranked.find(({ result }) => result.number === undefined);
  if (fallback === undefined) return undefined;
  const before = totalsOf(fallback.run).throughput;
  return before > 0 ? totalsOf(row.run).throughput / before - 1 : undefined;
}

/** The parameters of a candidate, with the name of the model where there are several. */
export function candidateText({ candidate }: { readonly candidate: Candidate }): string {
  const models = Object.keys(candidate);
  return models
    .map((model) => `${models.length > 1 ? `${model}: ` : ""}${parametersText(candidate[model]!)}`)
    .join("; ");
}

/** Number of instances and largest batch of a model in a candidate. */
export function shapeOf(
  row: RankedResult,
  model: string,
  { configs }: AnalysisOutcome,
): { instances: number; maxBatchSize: number; dynamicBatching: boolean; instanceGroup: string } | undefined {
  const config = configs[model];
  if (config === undefined) return undefined;
  const changed = variantConfig(config, row.result.candidate[model] ?? {});
  const groups = changed.instanceGroup.map(({ count, kind }) => `${Math.max(1, count)}:${kind.slice(5)}`);
  return {
    instances: changed.instanceGroup.reduce((sum, { count }) => sum + Math.max(1, count), 0),
    maxBatchSize: changed.maxBatchSize,
    dynamicBatching: changed.dynamicBatching !== undefined,
    instanceGroup: groups.join("/"),
  };
}

/** A constraint that is not met, for instance `perf_latency_p99 is 62 ms, over 50 ms`. */
export function breachText({ model, tag, limit, value }: Breach, several: boolean): string {
  const { unit } = METRICS[tag];
  const relation = value < limit ? "under" : "over";
  const name = several ? `${tag} of ${model}` : tag;
  return `${name} is ${shortNumber(value)} ${unit}, ${relation} ${shortNumber(limit)} ${unit}`;
}

/** One sentence about what was found. */
export function verdictText(outcome: AnalysisOutcome): string {
  const [best] = outcome.ranked;
  if (best === undefined) return "No configuration was measured.";
  const { throughput, p99Ms } = totalsOf(best.run);
  const figures = `${shortNumber(throughput)} infer/s with a p99 latency of ${shortNumber(p99Ms)} ms`;
  if (!isMet(outcome)) {
    const missing = best.breaches.map((breach) => breachText(breach, outcome.models.length > 1)).join("; ");
    return `No measured configuration meets the constraints. The nearest is ${candidateText(best.result)}: ${missing}.`;
  }
  if (best.result.number === undefined) return `The default configuration is the best one: ${figures}.`;
  const gain = throughputGain(best, outcome);
  const change = gain === undefined ? "" : `, ${signedPercent(gain)} throughput against the default`;
  return `The best configuration is ${candidateText(best.result)}: ${figures}${change}.`;
}
