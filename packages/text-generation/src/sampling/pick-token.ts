import type { RandomGenerator } from "./random-generator.js";
import type { SamplingParameters } from "./sampling-parameters.js";

/** Sampling parameters by which a token is picked. */
export type PickRules = Pick<SamplingParameters, "temperature" | "topK" | "topP" | "minP">;

/** Below this, a temperature acts as 0: the exponentials would not fit. */
const COLDEST = 1e-5;

/** Tokens with less than e^-21 (1e-9) of the highest probability are never picked. */
const FAR_BELOW = 21;

/**
 * Picks a token by its score: the first one with the highest score at temperature 0, else a random one by its
 * probability among those that `topK`, `topP` and `minP` leave.
 */
export function pickToken(
  scores: Float32Array,
  { temperature = 0, topK = 0, topP = 1, minP = 0 }: PickRules,
  random: RandomGenerator,
): number {
  const best = highest(scores);
  if (temperature < COLDEST) return best;
  const top = scores[best]!;
  // The random number is taken in any case, so that a text continues alike whatever is left to choose from.
  const share = random.next();
  const least = minP > 0 ? Math.log(minP) * temperature : Number.NEGATIVE_INFINITY;
  const far = Math.max(least, -FAR_BELOW * temperature);
  const candidates = above(scores, top + far);
  if (topK === 0 && topP >= 1) return drawn(scores, candidates, candidates.length, top, temperature, share);
  candidates.sort((a, b) => scores[b]! - scores[a]! || a - b);
  const kept = topK > 0 ? Math.min(topK, candidates.length) : candidates.length;
  return drawn(
    scores,
    candidates,
    nucleus(scores, candidates, kept, topP, temperature),
    top,
    temperature,
    share,
  );
}

function highest(scores: Float32Array): number {
  let best = 0;
  for (let id = 1; id < scores.length; id++) if (scores[id]! > scores[best]!) best = id;
  return best;
}

function above(scores: Float32Array, least: number): Uint32Array {
  let count = 0;
  for (let id = 0; id < scores.length; id++) if (scores[id]! >= least) count++;
  const ids = new Uint32Array(count);
  for (let id = 0, at = 0; id < scores.length; id++) if (scores[id]! >= least) ids[at++] = id;
  return ids;
}

/** Number of the first tokens whose probabilities add up to `topP`: at least one. */
function nucleus(
  scores: Float32Array,
  sorted: Uint32Array,
  count: number,
  topP: number,
  temperature: number,
): number {
  if (topP >= 1) return count;
  const top = scores[sorted[0]!]!;
  let total = 0;
  for (let i = 0; i < count; i++) total += Math.exp((scores[sorted[i]!]! - top) / temperature);
  let sum = 0;
  for (let i = 0; i < count; i++) {
    sum += Math.exp((scores[sorted[i]!]! - top) / temperature);
    if (sum >= topP * total) return i + 1;
  }
  return count;
}

function drawn(
  scores: Float32Array,
  ids: Uint32Array,
  count: number,
  top: number,
  temperature: number,
  share: number,
): number {
  let total = 0;
  for (let i = 0; i < count; i++) total += Math.exp((scores[ids[i]!]! - top) / temperature);
  let left = share * total;
  for (let i = 0; i < count; i++) {
    left -= Math.exp((scores[ids[i]!]! - top) / temperature);
    if (left < 0) return ids[i]!;
  }
  return ids[count - 1]!;
}
