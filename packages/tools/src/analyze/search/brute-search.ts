import type { Analysis } from "../analysis.js";
import { candidatesOf, type SearchSpace } from "../search-space.js";

/** Measures the default configuration and every candidate of the space. */
export async function bruteSearch(analysis: Analysis, space: SearchSpace): Promise<void> {
  const candidates = candidatesOf(space);
  analysis.expected = candidates.length + 1;
  await analysis.measure(analysis.defaultCandidate);
  for (const candidate of candidates) await analysis.measure(candidate);
}
