import type { SamplingParameters } from "../sampling/sampling-parameters.js";
import { type ScoredToken, TokenSampler, tokenLogprobs } from "../sampling/token-sampler.js";
import type { TokenConstraint } from "../structured/structured-output.js";
import { StopTexts, type TextResponses } from "../text-answer.js";
import {
  openTextStream,
  type ShownSpecialTokens,
  type TextStream,
  type TextTokenizer,
} from "../text-tokenizer.js";
import type { KvSlice, PassResult, PromptImages } from "./forward-pass.js";
import { PromptLookup } from "./prompt-lookup.js";

/** One text that is being generated: its tokens, its keys and values, and the text that was not sent yet. */
export class RunningText {
  readonly tokens: number[];
  readonly promptLength: number;
  /** Keys and values of the first tokens. */
  past: KvSlice | undefined;
  /** True while its client has to catch up. */
  blocked = false;
  /** True while it waits for the mask of its format, and the others go on. */
  awaitsFormat = false;
  /** True if it has looked for its beginning in files. */
  hasLooked = false;
  readonly #sampler: TokenSampler;
  readonly #stream: TextStream;
  readonly #lookup: PromptLookup | undefined;
  readonly #stops: StopTexts;
  readonly #ends: ReadonlySet<number>;
  readonly #stopTokens: ReadonlySet<number>;
  /** Tokens of the prompt whose probabilities were reported. */
  #reported = 0;

  /**
   * @param endTokens tokens at which the model ends a text
   * @param shown special tokens that are part of the text
   * @param lookupTokens largest number of tokens to guess in a step
   * @param images images of the prompt, whose tokens are negative numbers
   */
  constructor(
    prompt: readonly number[],
    readonly maxTokens: number,
    private readonly sampling: SamplingParameters,
    endTokens: readonly number[],
    private readonly constraint: TokenConstraint | undefined,
    shown: ShownSpecialTokens,
    tokenizer: TextTokenizer,
    readonly responses: TextResponses,
    private readonly lookupTokens = 0,
    readonly images?: PromptImages | undefined,
  ) {
    this.tokens = [...prompt];
    this.#lookup = lookupTokens > 0 ? new PromptLookup(lookupTokens) : undefined;
    this.promptLength = prompt.length;
    this.#ends = new Set(sampling.ignoreEos ? [] : endTokens);
    this.#stopTokens = new Set(sampling.stopTokenIds ?? []);
    const ends = new Set([...this.#ends, ...this.#stopTokens]);
    const excluded = excludedSequences(sampling.badWords ?? [], tokenizer);
    this.#sampler = new TokenSampler(sampling, prompt, ends, excluded);
    this.#stream = openTextStream(tokenizer, shown);
    this.#stops = new StopTexts(sampling.stop ?? [], sampling.includeStopStrInOutput);
  }

  /** Number of tokens that have their keys and values. */
  get computed(): number {
    return this.past?.length ?? 0;
  }

  /** Tokens that have to be computed before the next one can be chosen: at least one. */
  get pending(): number {
    return this.tokens.length - this.computed;
  }

  /** True if its next pass computes one token, and chooses the next. */
  get isDecoding(): boolean {
    return this.pending === 1 && this.tokens.length > this.promptLength;
  }

  /** Length of its keys and values after the next token is chosen and computed, with those that are only guessed. */
  get nextLength(): number {
    return this.tokens.length + 1 + this.lookupTokens;
  }

  /** True if it takes a further token in this step, which a slow client does not prevent. */
  get continues(): boolean {
    return this.past !== undefined && this.responses.isOpen;
  }

  /** Tokens that may follow, at most `most`, and none beyond the end of the text. */
  guess(most: number): readonly number[] {
    const left = this.promptLength + this.maxTokens - this.tokens.length - 1;
    const guess = this.#lookup?.guess(this.tokens, Math.max(0, Math.min(most, left))) ?? [];
    const image = guess.findIndex((token) => token < 0);
    return image < 0 ? guess : guess.slice(0, image);
  }

  /** Learns how many tokens of a guess were right. */
  learn(guessed: number, right: number): void {
    this.#lookup?.learn(guessed, right);
  }

  /** True while the probabilities of the prompt's tokens are still to be computed, which needs all of its scores. */
  get scoresPrompt(): boolean {
    return this.sampling.promptLogprobs !== undefined && this.#reported < this.promptLength;
  }

  /** Reports the probabilities of the prompt's tokens that a pass has scored: each token by the scores before it. */
  takePrompt({ past, scoresAfter }: PassResult, count: number): void {
    if (!this.scoresPrompt) return;
    const { promptLogprobs } = this.sampling;
    if (this.#reported === 0) this.#reportPromptToken([{ id: this.tokens[0]!, logprob: NaN, rank: NaN }]);
    const first = past.length - count;
    for (let index = 0; index < count; index++) {
      const next = first + index + 1;
      if (next !== this.#reported || next >= this.promptLength) continue;
      this.#reportPromptToken(tokenLogprobs(scoresAfter(index), this.tokens[next]!, promptLogprobs!));
    }
  }

  #reportPromptToken(logprobs: ScoredToken[]): void {
    this.responses.addPromptToken(logprobs);
    this.#reported++;
  }

  /**
   * Resolves when the mask of the next token is there or has failed. Undefined if it is there already, or if the text has
   * no format.
   */
  formatKnown(): Promise<void> | undefined {
    if (this.constraint === undefined || this.constraint.isKnown) return undefined;
    const ignore = () => {};
    return this.constraint.allowed().then(ignore, ignore);
  }

  /**
   * Chooses the next token and sends the text that is ready.
   *
   * @param scores scores of all tokens, which are changed
   * @returns true if the text is complete
   */
  async advance(scores: Float32Array): Promise<boolean> {
    if (this.maxTokens === 0) return this.#end("length");
    const mask = await this.constraint?.allowed();
    const { logprobs } = this.sampling;
    const count = logprobs ?? (this.responses.wantsLogprobs ? 0 : undefined);
    const raw =
      count !== undefined && (this.#sampler.changesScores || mask !== undefined) ? scores.slice() : scores;
    const token = this.#sampler.next(scores, mask);
    this.tokens.push(token);
    this.responses.addToken(count === undefined ? undefined : tokenLogprobs(raw, token, count));
    return this.#take(token);
  }

  /** Releases the resources of the text except its keys and values. */
  release(): void {
    this.past = undefined;
    this.constraint?.release();
  }

  #take(token: number): boolean {
    const length = this.tokens.length - this.promptLength;
    const isLong = length >= this.maxTokens;
    const completes = this.constraint?.accept(token) === true;
    if (this.#ends.has(token) || completes) {
      // As in vLLM, the end token is part of the text only if the request includes stop strings in its output.
      if (this.sampling.includeStopStrInOutput === true) this.#add(this.#stream.push(token));
      return this.#finish("stop");
    }
    const early = length < (this.sampling.minTokens ?? 0);
    if (this.#add(this.#stream.push(token), early)) return this.#end("stop");
    if (this.#stopTokens.has(token)) return this.#finish("stop");
    if (isLong) return this.#finish("length");
    this.responses.flush();
    return false;
  }

  /** Adds text. @returns true if a stop string ended it */
  #add(piece: string, ignoresStops = false): boolean {
    if (ignoresStops) {
      this.responses.addText(piece);
      return false;
    }
    const { text, stopped } = this.#stops.take(piece);
    this.responses.addText(text);
    return stopped;
  }

  /** Adds the text that was held back, and ends. */
  #finish(reason: "stop" | "length"): boolean {
    if (this.#add(this.#stream.end())) return this.#end("stop");
    this.responses.addText(this.#stops.rest());
    return this.#end(reason);
  }

  #end(reason: "stop" | "length"): boolean {
    this.responses.finish(reason);
    return true;
  }
}

/** Tokens of the texts that must not be generated, each at the beginning of a word and after a space. */
function excludedSequences(
  texts: readonly string[],
  tokenizer: Pick<TextTokenizer, "encode">,
): readonly (readonly number[])[] {
  return texts.flatMap((text) => {
    const bare = text.trimStart();
    return [bare, ` ${bare}`]
      .map((one) => tokenizer.encode(one, false))
      .filter((tokens) => tokens.length > 0);
  });
}
