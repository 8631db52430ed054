import { TritonError } from "@tritonjs/protocol";
import { pickToken } from "./pick-token.js";
import { RandomGenerator } from "./random-generator.js";
import type { SamplingParameters } from "./sampling-parameters.js";

/** Parts of the model and the request that a sampler needs. */
export interface SamplerContext {
  /** Tokens of the prompt, for the repetition penalty. */
  readonly prompt: readonly number[];
  /** Tokens that end the text. They are not taken before `minTokens`. */
  readonly endTokens: ReadonlySet<number>;
  /** Tokens in a row that must not be generated. @default none */
  readonly excluded?: readonly (readonly number[])[];
}

/** Chooses the tokens of one text by its sampling parameters. It keeps the counts of tokens that penalties need. */
export class TokenSampler {
  readonly #random: RandomGenerator;
  readonly #parameters: SamplingParameters;
  readonly #context: SamplerContext;
  readonly #bias: readonly (readonly [number, number])[];
  /** How often each token is in the text. */
  readonly #counts = new Map<number, number>();
  readonly #inPrompt: ReadonlySet<number>;
  readonly #penalizes: boolean;
  readonly #allowed: ReadonlySet<number> | undefined;
  readonly #excluded: readonly (readonly number[])[];
  /** The last tokens of the text, as many as the longest excluded row has before its last one. */
  readonly #last: number[] = [];
  #length = 0;

  constructor(parameters: SamplingParameters, context: SamplerContext) {
    const { repetitionPenalty = 1, presencePenalty = 0, frequencyPenalty = 0, logitBias = {} } = parameters;
    this.#parameters = parameters;
    this.#context = context;
    this.#random = new RandomGenerator(parameters.seed);
    this.#bias = Object.entries(logitBias).map(([id, bias]) => [Number(id), bias]);
    this.#penalizes = repetitionPenalty !== 1 || presencePenalty !== 0 || frequencyPenalty !== 0;
    this.#allowed = parameters.allowedTokenIds && new Set(parameters.allowedTokenIds);
    this.#excluded = context.excluded ?? [];
    this.#inPrompt = new Set(repetitionPenalty === 1 ? [] : context.prompt);
  }

  /** True if the sampler changes the scores that it gets. */
  get changesScores(): boolean {
    return (
      this.#bias.length > 0 ||
      this.#penalizes ||
      this.#excludes ||
      this.#length < (this.#parameters.minTokens ?? 0)
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
    this.#adjust(scores);
    if (mask !== undefined) applyMask(scores, mask);
    if (this.#excludes) this.#exclude(scores);
    if (this.#length < (this.#parameters.minTokens ?? 0)) this.#continueText(scores);
    const token = pickToken(scores, this.#parameters, this.#random);
    this.#counts.set(token, (this.#counts.get(token) ?? 0) + 1);
    this.#length++;
    if (this.#excluded.length > 0) this.#remember(token);
    return token;
  }

  get #excludes(): boolean {
    return this.#allowed !== undefined || this.#excluded.length > 0;
  }

  /** Leaves only the allowed tokens, without those that complete an excluded row. */
  #exclude(scores: Float32Array): void {
    const allowed = this.#allowed;
    for (let id = 0; allowed !== undefined && id < scores.length; id++) {
      if (!allowed.has(id)) scores[id] = Number.NEGATIVE_INFINITY;
    }
    for (const row of this.#excluded) {
      const before = row.slice(0, -1);
      const isNext = before.every((id, i) => this.#last.at(i - before.length) === id);
      const last = row.at(-1)!;
      if (isNext && last < scores.length) scores[last] = Number.NEGATIVE_INFINITY;
    }
    if (scores.some((score) => score > Number.NEGATIVE_INFINITY)) return;
    throw new TritonError(
      "INVALID_ARG",
      "cannot continue the text: expected a token that 'allowed_token_ids', 'bad_words' and the format allow, got none",
      { reason: "INVALID_INPUT" },
    );
  }

  #remember(token: number): void {
    this.#last.push(token);
    const longest = Math.max(...this.#excluded.map((row) => row.length));
    if (this.#last.length >= longest) this.#last.shift();
  }

  #adjust(scores: Float32Array): void {
    for (const [id, bias] of this.#bias) if (id < scores.length) scores[id]! += bias;
    if (this.#penalizes) this.#penalize(scores);
  }

  /** Excludes the tokens that end the text, unless no other token is allowed. */
  #continueText(scores: Float32Array): void {
    const { endTokens } = this.#context;
    const hasOther = scores.some((score, id) => score > Number.NEGATIVE_INFINITY && !endTokens.has(id));
    if (!hasOther) return;
    for (const id of endTokens) if (id < scores.length) scores[id] = Number.NEGATIVE_INFINITY;
  }

  #penalize(scores: Float32Array): void {
    const { repetitionPenalty = 1, presencePenalty = 0, frequencyPenalty = 0 } = this.#parameters;
    if (repetitionPenalty !== 1) {
      for (const id of this.#inPrompt) repeat(scores, id, repetitionPenalty);
      for (const id of this.#counts.keys()) {
        if (!this.#inPrompt.has(id)) repeat(scores, id, repetitionPenalty);
      }
    }
    for (const [id, count] of this.#counts) scores[id]! -= presencePenalty + count * frequencyPenalty;
  }
}

function repeat(scores: Float32Array, id: number, penalty: number): void {
  if (id >= scores.length) return;
  const score = scores[id]!;
  scores[id] = score > 0 ? score / penalty : score * penalty;
}

function applyMask(scores: Float32Array, mask: Int32Array): void {
  for (let id = 0; id < scores.length; id++) {
    if (((mask[id >> 5] ?? 0) & (1 << (id & 31))) === 0) scores[id] = Number.NEGATIVE_INFINITY;
  }
}
