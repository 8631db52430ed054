import type { SamplingParameters } from "../sampling/sampling-parameters.js";
import { tokenLogprobs } from "../sampling/token-logprobs.js";
import { TokenSampler } from "../sampling/token-sampler.js";
import type { TokenConstraint } from "../structured/token-constraint.js";
import { StopTexts } from "../tokenizer/stop-texts.js";
import { openTextStream, type ShownSpecialTokens, type TextStream } from "../tokenizer/text-stream.js";
import type { TextTokenizer } from "../tokenizer/text-tokenizer.js";
import { excludedSequences } from "./excluded-texts.js";
import type { KvSlice } from "./kv-block.js";
import type { TextResponses } from "./text-responses.js";

/** Parts from which a text is generated. */
export interface RunningTextInit {
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
}

/** One text that is being generated: its tokens, its keys and values, and the text that was not sent yet. */
export class RunningText {
  /** Tokens of the prompt and the text. */
  readonly tokens: number[];
  readonly promptLength: number;
  readonly maxTokens: number;
  readonly responses: TextResponses;
  /** Keys and values of the first tokens. */
  past: KvSlice | undefined;
  /** True while its client has to catch up. */
  blocked = false;
  readonly #sampling: SamplingParameters;
  readonly #sampler: TokenSampler;
  readonly #stream: TextStream;
  readonly #stops: StopTexts;
  readonly #constraint: TokenConstraint | undefined;
  readonly #ends: ReadonlySet<number>;
  readonly #stopTokens: ReadonlySet<number>;

  constructor({
    prompt,
    maxTokens,
    sampling,
    endTokens,
    constraint,
    shown,
    tokenizer,
    responses,
  }: RunningTextInit) {
    this.tokens = [...prompt];
    this.promptLength = prompt.length;
    this.maxTokens = maxTokens;
    this.responses = responses;
    this.#sampling = sampling;
    this.#constraint = constraint;
    this.#ends = new Set(sampling.ignoreEos ? [] : endTokens);
    this.#stopTokens = new Set(sampling.stopTokenIds ?? []);
    this.#sampler = new TokenSampler(sampling, {
      prompt,
      endTokens: new Set([...this.#ends, ...this.#stopTokens]),
      excluded: excludedSequences(sampling.badWords ?? [], tokenizer),
    });
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

  /** Length of its keys and values after the next token is chosen and computed. */
  get nextLength(): number {
    return this.tokens.length + 1;
  }

  /**
   * Chooses the next token and sends the text that is ready.
   *
   * @param scores scores of all tokens, which are changed
   * @returns true if the text is complete
   */
  async advance(scores: Float32Array): Promise<boolean> {
    const mask = await this.#constraint?.allowed();
    const { logprobs } = this.#sampling;
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
    this.#constraint?.release();
  }

  #take(token: number): boolean {
    const length = this.tokens.length - this.promptLength;
    const isLong = length >= this.maxTokens;
    const completes = this.#constraint?.accept(token) === true;
    if (this.#ends.has(token) || completes) {
      // As in vLLM, the end token is part of the text only if the request includes stop strings in its output.
      if (this.#sampling.includeStopStrInOutput === true) this.#add(this.#stream.push(token));
      return this.#finish("stop");
    }
    const early = length < (this.#sampling.minTokens ?? 0);
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
