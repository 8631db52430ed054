import { randomInt } from "node:crypto";
import { errorFor } from "@tritonjs/protocol";
import type { SamplingParameters } from "./sampling-parameters.js";

/** Chooses the tokens of one text by its sampling parameters. It keeps the counts of tokens that penalties need. */
export class TokenSampler {
  readonly #random: RandomGenerator;
  readonly #bias: readonly (readonly [number, number])[];
  readonly #counts = new Map<number, number>();
  readonly #inPrompt: ReadonlySet<number>;
  readonly #penalizes: boolean;
  readonly #allowed: ReadonlySet<number> | undefined;
  /** The last tokens of the text, as many as the longest excluded row has before its last one. */
  readonly #last: number[] = [];
  #length = 0;

  /**
   * @param prompt tokens of the prompt, for the repetition penalty
   * @param endTokens tokens that end the text. They are not taken before `minTokens`
   * @param excluded tokens in a row that must not be generated
   */
  constructor(
    private readonly parameters: SamplingParameters,
    prompt: readonly number[],
    private readonly endTokens: ReadonlySet<number>,
    private readonly excluded: readonly (readonly number[])[] = [],
  ) {
    const { repetitionPenalty = 1, presencePenalty = 0, frequencyPenalty = 0, logitBias = {} } = parameters;
    this.#random = new RandomGenerator(parameters.seed);
    this.#bias = Object.entries(logitBias).map(([id, bias]) => [Number(id), bias]);
    this.#penalizes = repetitionPenalty !== 1 || presencePenalty !== 0 || frequencyPenalty !== 0;
    this.#allowed = parameters.allowedTokenIds && new Set(parameters.allowedTokenIds);
    this.#inPrompt = new Set(repetitionPenalty === 1 ? [] : prompt);
  }

  /** True if the sampler changes the scores that it gets. */
  get changesScores(): boolean {
    return (
      this.#bias.length > 0 ||
      this.#penalizes ||
      this.#excludes ||
      this.#length < (this.parameters.minTokens ?? 0)
    );
  }

  /**
   * Chooses the next token.
   *
   * @throws TritonError INVALID_ARG if the request's tokens, texts and format leave no token
   * @param scores logits of all tokens, which are changed
   * @param mask bits of the tokens that are allowed: bit `id & 31` of word `id >> 5`
   */
  next(scores: Float32Array, mask?: Int32Array): number {
    for (const [id, bias] of this.#bias) if (id < scores.length) scores[id]! += bias;
    if (this.#penalizes) this.#penalize(scores);
    if (mask !== undefined) applyMask(scores, mask);
    if (this.#excludes) this.#exclude(scores);
    if (this.#length < (this.parameters.minTokens ?? 0)) this.#continueText(scores);
    const token = pickToken(scores, this.parameters, this.#random);
    this.#counts.set(token, (this.#counts.get(token) ?? 0) + 1);
    this.#length++;
    if (this.excluded.length > 0) this.#remember(token);
    return token;
  }

  get #excludes(): boolean {
    return this.#allowed !== undefined || this.excluded.length > 0;
  }

  /** Leaves only the allowed tokens, without those that complete an excluded row. */
  #exclude(scores: Float32Array): void {
    const allowed = this.#allowed;
    for (let id = 0; allowed !== undefined && id < scores.length; id++) {
      if (!allowed.has(id)) scores[id] = Number.NEGATIVE_INFINITY;
    }
    for (const row of this.excluded) {
      const before = row.slice(0, -1);
      const isNext = before.every((id, i) => this.#last.at(i - before.length) === id);
      const last = row.at(-1)!;
      if (isNext && last < scores.length) scores[last] = Number.NEGATIVE_INFINITY;
    }
    if (scores.some((score) => score > Number.NEGATIVE_INFINITY)) return;
    const text =
      "cannot continue the text: expected a token that 'allowed_token_ids', 'bad_words' and the format allow, got none";
    throw errorFor("INVALID_INPUT", text);
  }

  #remember(token: number): void {
    this.#last.push(token);
    const longest = Math.max(...this.excluded.map((row) => row.length));
    if (this.#last.length >= longest) this.#last.shift();
  }

  /** Excludes the tokens that end the text, unless no other token is allowed. */
  #continueText(scores: Float32Array): void {
    const { endTokens } = this;
    const hasOther = scores.some((score, id) => score > Number.NEGATIVE_INFINITY && !endTokens.has(id));
    if (!hasOther) return;
    for (const id of endTokens) if (id < scores.length) scores[id] = Number.NEGATIVE_INFINITY;
  }

  #penalize(scores: Float32Array): void {
    const { repetitionPenalty = 1, presencePenalty = 0, frequencyPenalty = 0 } = this.parameters;
    if (repetitionPenalty !== 1) {
      for (const id of this.#inPrompt) penalizeRepetition(scores, id, repetitionPenalty);
      for (const id of this.#counts.keys()) {
        if (!this.#inPrompt.has(id)) penalizeRepetition(scores, id, repetitionPenalty);
      }
    }
    for (const [id, count] of this.#counts) scores[id]! -= presencePenalty + count * frequencyPenalty;
  }
}

function penalizeRepetition(scores: Float32Array, id: number, penalty: number): void {
  if (id >= scores.length) return;
  const score = scores[id]!;
  scores[id] = score > 0 ? score / penalty : score * penalty;
}

function applyMask(scores: Float32Array, mask: Int32Array): void {
  for (let first = 0; first < scores.length; first += 32) {
    const word = mask[first >> 5] ?? 0;
    const end = Math.min(first + 32, scores.length);
    if (word === 0) scores.fill(Number.NEGATIVE_INFINITY, first, end);
    else if (word !== -1) {
      for (let id = first; id < end; id++) {
        if ((word & (1 << (id & 31))) === 0) scores[id] = Number.NEGATIVE_INFINITY;
      }
    }
  }
}

/** Below this, a temperature acts as 0: the exponentials would not fit. */
const COLDEST = 1e-5;

/** Tokens with less than e^-21 (1e-9) of the highest probability are never picked. */
const FAR_BELOW = 21;

/**
 * Picks a token by its score: the first one with the highest score at temperature 0, else a random one by its
 * probability among those that `topK`, `topP` and `minP` leave.
 */
function pickToken(
  scores: Float32Array,
  { temperature = 0, topK = 0, topP = 1, minP = 0 }: SamplingParameters,
  random: RandomGenerator,
): number {
  const best = highest(scores);
  if (temperature < COLDEST) return best;
  const top = scores[best]!;
  // The random number is taken in any case, so that a text continues alike whatever is left to choose from.
  const share = random.next();
  const least = minP > 0 ? Math.log(minP) * temperature : Number.NEGATIVE_INFINITY;
  const far = Math.max(least, -FAR_BELOW * temperature);
  const candidates = atLeast(scores, top + far);
  let kept = candidates.length;
  if (topK > 0 || topP < 1) {
    candidates.sort((a, b) => scores[b]! - scores[a]! || a - b);
    if (topK > 0) kept = Math.min(topK, kept);
    if (topP < 1) kept = nucleus(scores, candidates, kept, topP, temperature);
  }
  return drawn(scores, candidates, kept, top, temperature, share);
}

function highest(scores: Float32Array): number {
  let best = 0;
  for (let id = 1; id < scores.length; id++) if (scores[id]! > scores[best]!) best = id;
  return best;
}

function atLeast(scores: Float32Array, least: number): Uint32Array {
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

/** Random numbers of one request: the same numbers for the same seed, on any machine. Algorithm sfc32. */
class RandomGenerator {
  readonly #state: Uint32Array;

  /** @param seed a safe integer. @default a random one */
  constructor(seed: number = randomInt(2 ** 47)) {
    // Both halves, because a seed may be larger than 32 bits.
    this.#state = Uint32Array.of(seed, Math.floor(seed / 2 ** 32), 0x9e3779b9, 1);
    for (let i = 0; i < 15; i++) this.next();
  }

  /** The next number, from 0 to below 1. */
  next(): number {
    const state = this.#state;
    const [a, b, c, d] = state as unknown as [number, number, number, number];
    const sum = (a + b + d) >>> 0;
    state[0] = b ^ (b >>> 9);
    state[1] = c + (c << 3);
    state[2] = ((c << 21) | (c >>> 11)) + sum;
    state[3] = d + 1;
    return sum / 2 ** 32;
  }
}

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
