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

/** What a text is made of. */
interface TextParts {
  readonly prompt: readonly number[];
  readonly maxTokens: number;
  readonly sampling: SamplingParameters;
  /** Tokens at which the model ends a text. */
  readonly endTokens: readonly number[];
  readonly constraint?: TokenConstraint | undefined;
  /** Special tokens that are part of the text. */
  readonly shown: ShownSpecialTokens;
  readonly tokenizer: TextTokenizer;
  readonly responses: TextResponses;
  /** Largest number of tokens to guess in a step. @default 0 */
  readonly lookupTokens?: number;
  /** Images of the prompt, whose tokens are negative numbers. */
  readonly images?: PromptImages | undefined;
}

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

  readonly maxTokens: number;
  readonly responses: TextResponses;
  readonly images: PromptImages | undefined;

  constructor(private readonly parts: TextParts) {
    const { prompt, sampling, endTokens, shown, tokenizer, lookupTokens = 0 } = parts;
    this.maxTokens = parts.maxTokens;
    this.responses = parts.responses;
    this.images = parts.images;
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
    return this.tokens.length + 1 + (this.parts.lookupTokens ?? 0);
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
    return this.parts.sampling.promptLogprobs !== undefined && this.#reported < this.promptLength;
  }

  /** Reports the probabilities of the prompt's tokens that a pass has scored: each token by the scores before it. */
  takePrompt({ past, scoresAfter }: PassResult, count: number): void {
    if (!this.scoresPrompt) return;
    const { promptLogprobs } = this.parts.sampling;
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
    if (this.parts.constraint === undefined || this.parts.constraint.isKnown) return undefined;
    const ignore = () => {};
    return this.parts.constraint.allowed().then(ignore, ignore);
  }

  /**
   * Chooses the next token and sends the text that is ready.
   *
   * @param scores scores of all tokens, which are changed
   * @returns true if the text is complete
   */
  async advance(scores: Float32Array): Promise<boolean> {
    if (this.maxTokens === 0) return this.#end("length");
    const mask = await this.parts.constraint?.allowed();
    const { logprobs } = this.parts.sampling;
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
    this.parts.constraint?.release();
  }

  #take(token: number): boolean {
    const length = this.tokens.length - this.promptLength;
    const isLong = length >= this.maxTokens;
    const completes = this.parts.constraint?.accept(token) === true;
    if (this.#ends.has(token) || completes) {
      // As in vLLM, the end token is part of the text only if the request includes stop strings in its output.
      if (this.parts.sampling.includeStopStrInOutput === true) this.#add(this.#stream.push(token));
      return this.#finish("stop");
    }
    const early = length < (this.parts.sampling.minTokens ?? 0);
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

/**
 * Numbers of tokens in a row that have to occur earlier in a text, so that what followed them there may follow again.
 * Long rows tell places apart that have some words in common; short rows find a copy early.
 */
const ROWS = [6, 3, 2] as const;

/** Steps without a guess after one of which no token was right, for each such guess in a row. */
const PAUSE = 4;

/** Most wrong guesses in a row that lengthen the pause. */
const LONGEST_PAUSE = 8;

/**
 * Guesses the next tokens of a text from the text itself: where its last tokens have occurred before, what followed
 * then may follow again. A guess costs one wider step. Texts that copy from their prompt gain the steps of the tokens
 * that were right.
 */
export class PromptLookup {
  /** Position after the last occurrence of each row of tokens. */
  readonly #after = new Map<string, number>();
  #indexed = ROWS.at(-1)!;
  #length: number;
  #wrong = 0;
  #pause = 0;

  /** @param longest largest number of tokens of a guess */
  constructor(private readonly longest: number) {
    this.#length = longest;
  }

  /**
   * @param tokens the prompt and the text so far
   * @param most largest number of tokens of the guess
   * @returns the tokens that may follow; often none
   */
  guess(tokens: readonly number[], most: number): number[] {
    for (; this.#indexed < tokens.length; this.#indexed++) {
      for (const row of ROWS) this.#after.set(rowBefore(tokens, this.#indexed, row), this.#indexed);
    }
    if (this.#pause > 0) {
      this.#pause--;
      return [];
    }
    const places = ROWS.map((row) => this.#after.get(rowBefore(tokens, tokens.length, row)));
    const from = places.find((place) => place !== undefined);
    if (from === undefined) return [];
    const guess: number[] = [];
    const length = Math.min(this.#length, most);
    // A row that ends close to the end of the text repeats with that distance.
    for (let i = from; guess.length < length; i++) guess.push(tokens[i] ?? guess[i - tokens.length]!);
    return guess;
  }

  /** Learns how many tokens of a guess were right: the next one is longer or shorter, or has to wait. */
  learn(guessed: number, right: number): void {
    if (guessed === 0) return;
    this.#length = right === guessed ? Math.min(this.longest, 2 * guessed) : Math.max(2, right + 1);
    this.#length = Math.min(this.#length, this.longest);
    this.#wrong = right === 0 ? Math.min(this.#wrong + 1, LONGEST_PAUSE) : 0;
    this.#pause = PAUSE * this.#wrong;
  }
}

function rowBefore(tokens: readonly number[], end: number, length: number): string {
  return tokens.slice(Math.max(0, end - length), end).join(" ");
}
