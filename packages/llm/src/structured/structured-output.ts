import { errorFor, TritonError } from "@tritonjs/protocol";
import type { ResponseFormat } from "../sampling/sampling-parameters.js";
import type { ConstraintVocabulary } from "./constraint-vocabulary.js";
import { type AllowedTokens, GrammarThread } from "./grammar-thread.js";

/** Longest schema, pattern or grammar, in characters. */
export const MAX_FORMAT = 262_144;
/** Memory of the grammars of a vocabulary, as they estimate it, and of the thread that holds them. */
export const GRAMMAR_LIMITS = { bytes: 64 * 2 ** 20, heapMegabytes: 256 };

/**
 * Limits generated texts to formats, for one vocabulary. A thread reads the formats and makes the masks of their texts.
 * It starts with the first request that asks for a format, and sorts the tokens, which takes 0.2 s for 128,000 of them.
 * A format may take 600,000 steps, about 100 ms, and 30,000 more for each token of a text.
 *
 * @example
 * ```ts
 * const structured = new StructuredOutput(readConstraintVocabulary(tokenizerJson, 32_000), [2]);
 * const constraint = await structured.constrain({ type: "json_object" });
 * await structured.close();
 * ```
 */
export class StructuredOutput {
  #thread: GrammarThread | undefined;

  /**
   * @param endTokens ids that end a text. At least one is needed
   * @param warnUnheld receives a warning of a schema with keywords that a grammar cannot hold, which is then read
   * without them. @default such a schema is refused
   * @param limits memory of the grammars, and of the heap of their thread
   */
  constructor(
    readonly vocabulary: ConstraintVocabulary,
    readonly endTokens: readonly number[],
    private readonly warnUnheld?: (text: string) => void,
    private readonly limits: { readonly bytes: number; readonly heapMegabytes: number } = GRAMMAR_LIMITS,
  ) {
    if (endTokens.length === 0) {
      const text = "cannot limit answers to a format: expected a token that ends a text, got none";
      throw new TritonError("INVALID_ARG", text);
    }
  }

  /**
   * Makes the constraint of a text. Undefined for the format of any text.
   *
   * @param signal ends the reading of the format
   * @throws TritonError INVALID_ARG for a format that is too long, that takes too many steps or bytes, that cannot be
   * read, or that a grammar cannot hold; CANCELLED when the signal aborts
   */
  async constrain(format: ResponseFormat, signal?: AbortSignal): Promise<TokenConstraint | undefined> {
    if (format.type === "text") return undefined;
    const json = jsonOf(format);
    if (json.length > MAX_FORMAT) {
      const text = `cannot read response_format: expected a grammar of at most ${MAX_FORMAT} characters, got ${json.length}`;
      throw errorFor("INVALID_INPUT", text);
    }
    const thread = this.#openThread();
    const [text, allowed] = thread.begin(json);
    const leave = () => thread.end(text);
    signal?.addEventListener("abort", leave, { once: true });
    if (signal?.aborted) leave();
    try {
      const first = await allowed;
      if (first.warning !== undefined) this.warnUnheld?.(`${first.warning}: texts may break them`);
      return new TokenConstraint(thread, text, first, this.endTokens);
    } finally {
      signal?.removeEventListener("abort", leave);
    }
  }

  /** Ends the thread, with all texts. The next format starts another one. */
  async close(): Promise<void> {
    await this.#thread?.close();
  }

  #openThread(): GrammarThread {
    const { vocabulary, endTokens, warnUnheld, limits } = this;
    if (this.#thread === undefined || this.#thread.hasEnded) {
      const data = { vocabulary, endTokens, allowsUnheld: warnUnheld !== undefined, maxBytes: limits.bytes };
      this.#thread = new GrammarThread(data, limits.heapMegabytes);
    }
    return this.#thread;
  }
}

function jsonOf(format: ResponseFormat): string {
  try {
    return JSON.stringify(format);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw errorFor("INVALID_INPUT", "cannot read the format of the answer: it is nested too deeply");
  }
}

/**
 * Limits the tokens of one generated text to those that a grammar allows, step by step. The sampler asks for the mask,
 * excludes every token whose bit is 0, samples, and reports the token.
 *
 * @example
 * ```ts
 * const mask = await constraint.allowed();
 * const token = sample(logits, mask);
 * if (constraint.accept(token)) return "stop";
 * ```
 */
export class TokenConstraint {
  /** The tokens of the next step once they are known. */
  #allowed: AllowedTokens | undefined;
  #mask: Promise<Int32Array>;
  /** Tokens that the thread does not know of yet. */
  #tokens: number[] = [];
  #isReleased = false;
  /** True once an end token was accepted. */
  finished = false;

  constructor(
    private readonly thread: GrammarThread,
    private readonly text: number,
    first: AllowedTokens,
    private readonly endTokens: readonly number[],
  ) {
    this.#allowed = first;
    this.#mask = Promise.resolve(first.mask);
  }

  /** True if {@link allowed} need not wait. */
  get isKnown(): boolean {
    return this.#allowed !== undefined;
  }

  /**
   * Resolves to the tokens that the next step may sample: bit `id & 31` of word `id >> 5` is 1 if the token is allowed.
   * The mask has at least one bit set until the constraint is finished, and bits for the whole width of the logits.
   * Called right after {@link accept}, it need not wait for the next scores. Two calls without `accept` between them
   * give the same array, which must not be changed.
   *
   * @throws TritonError INTERNAL once the constraint is finished or released, and if the thread of the grammars has
   * ended; INVALID_ARG if the next tokens take too many steps or bytes to find
   */
  async allowed(): Promise<Int32Array> {
    this.#checkOpen();
    return this.#mask;
  }

  /**
   * Takes the token that was sampled by the mask of {@link allowed}. Returns {@link finished}.
   *
   * @throws TritonError INTERNAL if the mask did not allow the token, or was not awaited
   */
  accept(token: number): boolean {
    this.#checkOpen();
    const before = this.#allowed;
    const { mask, mayEnd } = before ?? {};
    if (before === undefined || mask === undefined || ((mask[token >> 5] ?? 0) >>> (token & 31)) % 2 === 0) {
      const got =
        mask === undefined ? "expected allowed() to be awaited" : "expected one that the format allows";
      throw new TritonError("INTERNAL", `cannot accept token ${token}: ${got}`);
    }
    this.finished = mayEnd === true && this.endTokens.includes(token);
    if (this.finished) this.release();
    else this.#follow(before, token);
    return this.finished;
  }

  #follow(before: AllowedTokens, token: number): void {
    const { known } = this.thread;
    this.#tokens.push(token);
    this.#allowed = known.after(before, token);
    if (this.#allowed !== undefined) {
      this.#mask = Promise.resolve(this.#allowed.mask);
      return;
    }
    // Asked now, so that it is made while the model runs.
    this.#mask = this.thread.take(this.text, this.#tokens).then((allowed) => {
      known.add(before, token, allowed);
      this.#allowed = allowed;
      return allowed.mask;
    });
    this.#mask.catch(() => {});
    this.#tokens = [];
  }

  /** Frees the memory of the grammar's state. A second call does nothing. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.thread.end(this.text);
  }

  #checkOpen(): void {
    if (!this.#isReleased) return;
    const state = this.finished ? "finished" : "released";
    throw new TritonError("INTERNAL", `cannot use the constraint of an answer: it is ${state}`);
  }
}
