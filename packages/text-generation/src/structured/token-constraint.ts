import type { TokenSpelling } from "../tokenizer/token-spelling.js";

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
export interface TokenConstraint {
  /**
   * Resolves to the tokens that the next step may sample: bit `id & 31` of word `id >> 5` is 1 if the token is allowed.
   * The mask has at least one bit set until the constraint is finished, and bits for the whole width of the logits.
   * Called right after {@link accept}, it is computed while the model runs. Two calls without `accept` between them
   * give the same array, which stays valid until the next `accept`.
   *
   * @throws TritonError INTERNAL once the constraint is finished or released
   */
  allowed(): Promise<Int32Array>;
  /**
   * Takes the token that was sampled. Returns {@link finished}.
   *
   * @throws TritonError INTERNAL if the mask did not allow the token
   */
  accept(token: number): boolean;
  /** True once an end token was accepted. */
  readonly finished: boolean;
  /** Frees the memory of the grammar's state. A second call does nothing. */
  release(): void;
}

/** Tokens of a model, as a constraint needs them. */
export interface ConstraintVocabulary {
  /** Spelling of each token in `tokenizer.json`, by id: with "Ġ" or "▁" for a space, as the file has them. */
  readonly tokens: readonly string[];
  /** How the spellings stand for bytes. */
  readonly spelling: TokenSpelling;
  /** Width of the logits, which some models pad beyond their tokens. @default the number of tokens */
  readonly size?: number;
}
