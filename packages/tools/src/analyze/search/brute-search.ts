import type { Analysis } from "../analysis.js";
import { allLevels, isPlateau, risingLevels, throughputOf } from "../level-walk.js";
import { candidatesOf, type SearchSpace, variantsOf } from "../search-space.js";
import { type Candidate, canonical } from "../variant-parameters.js";
import { sweepLoads } from "./load-sweep.js";

/** Axes that end where the throughput no longer rises. */
export interface BruteSearchOptions {
  readonly endsLoadsEarly?: boolean;
  /** For the maximum batch of a single model. */
  readonly endsSizesEarly?: boolean;
}

/**
 * Measures the default configuration and the candidates of the space. Where constraints break between two levels of
 * load, levels between them are measured too.
 */
export async function bruteSearch(
  analysis: Analysis,
  space: SearchSpace,
  { endsLoadsEarly = false, endsSizesEarly = false }: BruteSearchOptions = {},
): Promise<void> {
  const { goal } = analysis;
  const measure = (candidate: Candidate) => {
    const levels = analysis.levelsOf(candidate);
    const walk =
      levels.length === 1
        ? allLevels(levels)
        : risingLevels(levels, goal, { endsEarly: endsLoadsEarly, endsAtLimit: false });
    return analysis.measure(candidate, walk);
  };
  const candidates = candidatesOf(space);
  analysis.expected = candidates.length + 1;
  await measure(analysis.defaultCandidate);
  const [only, ...others] = Object.keys(space);
  const sizes = only === undefined || others.length > 0 ? undefined : space[only]!.maxBatchSize;
  if (!endsSizesEarly || sizes === undefined) for (const candidate of candidates) await measure(candidate);
  else {
    const { maxBatchSize: _, ...rest } = space[only!]!;
    for (const variant of variantsOf(rest)) {
      const throughputs: number[] = [];
      for (const maxBatchSize of sizes.toSorted((a, b) => a - b)) {
        const { runs } = await measure({ [only!]: canonical({ ...variant, maxBatchSize }) });
        // A size that does not work ends the axis: larger ones will not work either.
        if (runs.length === 0) break;
        throughputs.push(Math.max(...runs.map(throughputOf)));
        if (isPlateau(throughputs)) break;
      }
    }
  }
  await sweepLoads(analysis);
}
