/** A token's probability as the model gave it, before any parameter of the request changed it. */
export interface ScoredToken {
  readonly id: number;
  /** Natural logarithm of the probability. */
  readonly logprob: number;
  /** 1 for the most likely token. */
  readonly rank: number;
}

/**
 * Computes the probability of the chosen token and of the most likely ones.
 *
 * @param scores logits as the model gave them
 * @param count number of most likely tokens
 * @returns the chosen token first, then the most likely ones
 */
export function tokenLogprobs(scores: Float32Array, chosen: number, count: number): ScoredToken[] {
  let top = Number.NEGATIVE_INFINITY;
  for (const score of scores) if (score > top) top = score;
  let total = 0;
  let rank = 1;
  for (const score of scores) {
    total += Math.exp(score - top);
    if (score > scores[chosen]!) rank++;
  }
  const base = top + Math.log(total);
  const entry = (id: number, rank: number) => ({ id, logprob: scores[id]! - base, rank });
  return [
    entry(chosen, rank),
    ...mostLikely(scores, count)
      .map((id, i) => entry(id, i + 1))
      .filter(({ id }) => id !== chosen),
  ];
}

function mostLikely(scores: Float32Array, count: number): number[] {
  const best: number[] = [];
  if (count === 0) return best;
  for (let id = 0; id < scores.length; id++) {
    if (best.length === count && scores[id]! <= scores[best[count - 1]!]!) continue;
    let at = best.length;
    while (at > 0 && scores[best[at - 1]!]! < scores[id]!) at--;
    best.splice(at, 0, id);
    if (best.length > count) best.pop();
  }
  return best;
}
