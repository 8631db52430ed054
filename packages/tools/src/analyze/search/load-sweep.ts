import type { Analysis } from "../analysis.js";
import type { AnalyzeLevel } from "../figures.js";
import { risingLevels } from "../level-walk.js";
import { compareResults } from "../result-order.js";
import { candidateKey } from "../variant-parameters.js";

/** Candidates whose load is swept, besides the default configuration. */
const SWEPT = 3;

/**
 * Measures the best candidates and the default one under rising load, which doubles until the throughput no longer
 * rises or a constraint breaks; then it bisects. Only for a search that has chosen the load itself: it has measured each
 * candidate under one load.
 */
export async function sweepLoads(analysis: Analysis): Promise<void> {
  const { load, goal } = analysis;
  if (load.kind !== "automatic") return;
  const best = analysis.results
    .filter(({ runs }) => runs.length > 0)
    .toSorted((a, b) => compareResults(b, a, goal))
    .slice(0, SWEPT)
    .map(({ candidate }) => candidate);
  const candidates = [...best, analysis.defaultCandidate];
  const swept = [...new Map(candidates.map((one) => [candidateKey(one), one])).values()];
  const levels: AnalyzeLevel[] = [];
  for (let value = load.min; value <= load.max; value *= 2) levels.push({ mode: "concurrency", value });
  analysis.observer.onPhase?.(`measuring the best ${best.length} configurations under rising load`);
  analysis.expected = swept.length;
  for (const candidate of swept) {
    await analysis.extend(candidate, risingLevels(levels, goal, { endsEarly: true, endsAtLimit: true }));
  }
}
