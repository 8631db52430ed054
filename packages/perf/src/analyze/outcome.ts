import type { ModelConfig } from "@tritonjs/protocol";
import type { Analysis } from "./analysis.js";
import {
  type Breach,
  bestRun,
  breachesOf,
  type CandidateResult,
  candidateKey,
  compareResults,
  compareRuns,
  isDefault,
  type LevelRun,
  type Prediction,
  type SearchGoal,
  scoreOf,
  variantName,
} from "./candidate.js";
import { runAt } from "./run-candidate.js";

export interface RankedResult {
  readonly result: CandidateResult;
  /** The measurement at the level that stands for the candidate: the mean, if there are several. */
  readonly run: LevelRun;
  /** The estimate for that level, which decides the place; undefined for a search without estimates. */
  readonly estimate?: LevelRun;
  /** By how much it is better than the default configuration, as a share; undefined without a default. */
  readonly gain?: number;
  /** Constraints that the estimate does not meet; those that the measurement does not meet, without an estimate. */
  readonly breaches: readonly Breach[];
  /** Place among the simulated candidates, from 1, and what was foretold for the level. */
  readonly simulated?: { readonly rank: number; readonly run: LevelRun };
}

export interface AnalysisOutcome {
  readonly models: readonly string[];
  readonly configs: Readonly<Record<string, ModelConfig>>;
  readonly batchSize: number;
  readonly goal: SearchGoal;
  readonly search: string;
  /** Best first. */
  readonly ranked: readonly RankedResult[];
  readonly failed: readonly CandidateResult[];
  readonly predictions: readonly Prediction[];
  readonly measurements: number;
  readonly elapsedMs: number;
  readonly endedBy?: "interrupted" | "budget";
  readonly toolVersion: string;
  readonly command: string;
}

type Described = Pick<AnalysisOutcome, "search" | "elapsedMs" | "endedBy" | "toolVersion" | "command">;

export function outcomeOf(analysis: Analysis, described: Described): AnalysisOutcome {
  const { goal, machine, results } = analysis;
  const fallback = results.find(({ candidate }) => Object.values(candidate).every(isDefault));
  const reference = fallback && bestRun(fallback.runs, goal);
  const predictions = [...analysis.predictions.values()].sort((a, b) => compareResults(b, a, goal));
  const places = new Map(predictions.map(({ candidate }, i) => [candidateKey(candidate), i]));
  const ranked = results
    .filter(({ runs }) => runs.length > 0)
    .toSorted((a, b) => compareResults(analysis.estimateOf(b), analysis.estimateOf(a), goal))
    .map((result): RankedResult => {
      const estimate = bestRun(analysis.estimates.get(candidateKey(result.candidate)) ?? [], goal);
      const run = estimate === undefined ? bestRun(result.runs, goal)! : runAt(result.runs, estimate.level)!;
      const place = places.get(candidateKey(result.candidate));
      const simulated = place === undefined ? undefined : predictions[place]!.runs[result.runs.indexOf(run)];
      return {
        result,
        run,
        ...(estimate !== undefined && { estimate }),
        ...(reference !== undefined && { gain: scoreOf(run, reference, goal) }),
        breaches: breachesOf(estimate ?? run, goal),
        ...(simulated !== undefined && { simulated: { rank: place! + 1, run: simulated } }),
      };
    });
  return {
    models: machine.loaded,
    configs: machine.configs,
    batchSize: machine.batchSize,
    goal,
    ranked,
    failed: results.filter(({ runs }) => runs.length === 0),
    predictions,
    measurements: analysis.measurements,
    ...described,
  };
}

/**
 * Difference of throughput below which a configuration may be the default one: the share by which either of both varied
 * while it was measured. Undefined if that is not known.
 */
export function noiseOf({ run }: RankedResult, { ranked }: AnalysisOutcome): number | undefined {
  const fallback = ranked.find(({ result }) => result.number === undefined);
  const noise = Math.max(run.spread ?? -1, fallback?.run.spread ?? -1);
  return noise < 0 ? undefined : noise;
}

/** The best candidates with the default configuration, which is always listed. */
export function listed(outcome: AnalysisOutcome, count: number): readonly RankedResult[] {
  const top = outcome.ranked.slice(0, count);
  const fallback = outcome.ranked.find(({ result }) => result.number === undefined);
  return fallback === undefined || top.includes(fallback) ? top : [...top, fallback];
}

export function candidateName({ candidate, number }: CandidateResult): string {
  return Object.keys(candidate)
    .map((model) => variantName(model, number))
    .join(" + ");
}

export function isMet({ ranked }: AnalysisOutcome): boolean {
  return ranked[0]?.breaches.length === 0;
}

/** Throughput of all loaded models together, and the highest p99 latency among them. */
export function totalsOf(run: LevelRun): { throughput: number; p99Ms: number; memory: number } {
  const all = Object.values(run.models).map(({ figures }) => figures);
  return {
    throughput: all.reduce((sum, figures) => sum + figures.perf_throughput, 0),
    p99Ms: Math.max(...all.map((figures) => figures.perf_latency_p99)),
    memory: Math.max(...all.map((figures) => figures.cpu_used_ram)),
  };
}

/** How well the simulation ranks: the share of pairs of measured candidates that it has in the measured order. */
export function rankAgreement({ ranked, goal }: AnalysisOutcome): { pairs: number; share: number } {
  const seen = ranked
    .filter(({ simulated }) => simulated !== undefined)
    .toSorted((a, b) => compareRuns(b.run, a.run, goal));
  let [pairs, agreed] = [0, 0];
  seen.forEach((better, i) => {
    for (const worse of seen.slice(i + 1)) {
      if (compareRuns(better.run, worse.run, goal) === 0) continue;
      pairs++;
      if (better.simulated!.rank < worse.simulated!.rank) agreed++;
    }
  });
  return { pairs, share: pairs === 0 ? Number.NaN : agreed / pairs };
}
