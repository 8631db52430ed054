import { TritonError } from "@tritonjs/protocol";
import type { ResponseFormat } from "../sampling/sampling-parameters.js";
import { type CompiledGrammar, VocabularyCompiler } from "./grammar-compiler.js";
import { GrammarConstraint } from "./grammar-constraint.js";
import { grammarSource } from "./grammar-source.js";
import type { ConstraintVocabulary, TokenConstraint } from "./token-constraint.js";
import type { GrammarMatcher } from "./web-xgrammar.js";

/** Largest number of cached grammars. One of a few kilobytes takes 0.1 to 1 s to compile for 128,000 tokens. */
const MAX_GRAMMARS = 32;
/** Largest number of matchers of a grammar that are kept for later texts. */
const MAX_IDLE_MATCHERS = 16;

interface CachedGrammar {
  readonly compiled: CompiledGrammar;
  readonly idle: GrammarMatcher[];
}

/**
 * Limits generated texts to formats, for one vocabulary. Needs the package `@mlc-ai/web-xgrammar`, which is loaded with
 * the first request that asks for a format. The vocabulary then takes 10 ms for each thousand tokens.
 *
 * @example
 * ```ts
 * const structured = new StructuredOutput(readConstraintVocabulary(tokenizerJson, 32_000), [2]);
 * const constraint = await structured.constrain({ type: "json_object" });
 * ```
 */
export class StructuredOutput {
  #compiler: Promise<VocabularyCompiler> | undefined;
  /** In the order of use, the latest last. */
  readonly #grammars = new Map<string, Promise<CachedGrammar>>();

  /** `endTokens` are the ids that end a text. At least one is needed. */
  constructor(
    readonly vocabulary: ConstraintVocabulary,
    readonly endTokens: readonly number[],
  ) {
    if (endTokens.length === 0) {
      throw new TritonError(
        "INVALID_ARG",
        "cannot limit answers to a format: expected a token that ends a text, got none",
      );
    }
  }

  /**
   * Makes the constraint of a text. Undefined for the format of any text.
   *
   * @throws TritonError INVALID_ARG for a format that is too long or cannot be compiled; UNAVAILABLE if the package is
   * not installed
   */
  async constrain(format: ResponseFormat): Promise<TokenConstraint | undefined> {
    const source = grammarSource(format);
    if (source === undefined) return undefined;
    const compiler = await this.#open();
    const key = JSON.stringify(source);
    const pending =
      this.#grammars.get(key) ?? compiler.compile(source).then((compiled) => ({ compiled, idle: [] }));
    this.#grammars.delete(key);
    this.#grammars.set(key, pending);
    try {
      const { compiled, idle } = await pending;
      this.#evict();
      const matcher = idle.pop() ?? (await compiler.library.GrammarMatcher.createGrammarMatcher(compiled));
      const { tokens, size = tokens.length } = this.vocabulary;
      return new GrammarConstraint(matcher, size, () => {
        // A reset matcher is as good as a new one, and each new one leaks a few bytes.
        if (idle.length < MAX_IDLE_MATCHERS) idle.push(matcher);
        else matcher.dispose();
      });
    } catch (error) {
      if (this.#grammars.get(key) === pending) this.#grammars.delete(key);
      throw error;
    }
  }

  #open(): Promise<VocabularyCompiler> {
    this.#compiler ??= VocabularyCompiler.open(this.vocabulary, this.endTokens).catch((error: unknown) => {
      this.#compiler = undefined;
      throw error;
    });
    return this.#compiler;
  }

  #evict(): void {
    for (const [key, grammar] of this.#grammars) {
      if (this.#grammars.size <= MAX_GRAMMARS) return;
      this.#grammars.delete(key);
      void grammar.then(
        ({ compiled, idle }) => {
          for (const matcher of idle.splice(0)) matcher.dispose();
          compiled.dispose();
        },
        // Reported to the request that asked for it.
        () => {},
      );
    }
  }
}
