import { errorFor, TritonError } from "@tritonjs/protocol";
import type { ResponseFormat } from "../sampling/sampling-parameters.js";
import { spellingOfBytes, type TokenizerJson, type TokenSpelling, tokenSpelling } from "../token-spelling.js";
import { type Regex, type Regexes, TooComplex } from "./byte-regex.js";
import { GrammarMachine, type GrammarState, type Part, UnheldGrammar } from "./grammar.js";
import { grammarOfText } from "./grammar-text.js";
import { jsonGrammar } from "./json-grammar.js";
import { JsonText, PlainLetters } from "./json-text.js";
import { patternRegex, UnheldPattern } from "./pattern.js";
import { InvalidSchema } from "./schema-keywords.js";
import { JsonScalars, TokenBytes, TokenGrammar } from "./token-masks.js";

/** Largest number of cached grammars. */
const MAX_GRAMMARS = 32;
/** Number of expressions after which all grammars are made anew for later texts. Each takes 0.3 kB. */
const MAX_EXPRESSIONS = 500_000;
/** Longest schema, pattern or grammar, in characters. */
const MAX_CHARACTERS = 262_144;
type GrammarFormat = Exclude<ResponseFormat, { type: "text" }>;

/**
 * Limits generated texts to formats, for one vocabulary. The tokens are sorted with the first request that asks for a
 * format, which takes 0.2 s for 128,000 of them. A grammar is read in a few milliseconds, and its masks are made as
 * texts reach them and kept.
 *
 * @example
 * ```ts
 * const structured = new StructuredOutput(readConstraintVocabulary(tokenizerJson, 32_000), [2]);
 * const constraint = await structured.constrain({ type: "json_object" });
 * ```
 */
export class StructuredOutput {
  #tokens: TokenBytes | undefined;
  /** Expressions that all grammars share, because most of what one derives is the same in others. */
  #text = new JsonText();
  /** In the order of use, the latest last. */
  readonly #grammars = new Map<string, TokenGrammar>();

  /**
   * @param endTokens ids that end a text. At least one is needed
   * @param warnUnheld receives a warning of a schema with keywords that a grammar cannot hold, which is then read
   * without them. @default such a schema is refused
   */
  constructor(
    readonly vocabulary: ConstraintVocabulary,
    readonly endTokens: readonly number[],
    private readonly warnUnheld?: (text: string) => void,
  ) {
    if (endTokens.length === 0) {
      const text = "cannot limit answers to a format: expected a token that ends a text, got none";
      throw new TritonError("INVALID_ARG", text);
    }
  }

  /**
   * Makes the constraint of a text. Undefined for the format of any text.
   *
   * @throws TritonError INVALID_ARG for a format that is too long, that cannot be read, or that a grammar cannot hold
   */
  async constrain(format: ResponseFormat): Promise<TokenConstraint | undefined> {
    if (format.type === "text") return undefined;
    const key = JSON.stringify(format);
    if (key.length > MAX_CHARACTERS) {
      const text = `cannot read response_format: expected a grammar of at most ${MAX_CHARACTERS} characters, got ${key.length}`;
      throw errorFor("INVALID_INPUT", text);
    }
    if (this.#text.regexes.size > MAX_EXPRESSIONS) {
      this.#text = new JsonText();
      this.#grammars.clear();
    }
    const grammar = this.#grammars.get(key) ?? this.#read(format);
    this.#grammars.delete(key);
    this.#grammars.set(key, grammar);
    if (this.#grammars.size > MAX_GRAMMARS) this.#grammars.delete(this.#grammars.keys().next().value!);
    return new GrammarConstraint(grammar);
  }

  #read(format: GrammarFormat): TokenGrammar {
    const { tokens, spelling, size = tokens.length } = this.vocabulary;
    this.#tokens ??= new TokenBytes(tokens, spelling, size);
    try {
      const { root, regexes, plainChars } = this.#grammarOf(format);
      return new TokenGrammar(new GrammarMachine(regexes, root), this.#tokens, this.endTokens, plainChars);
    } catch (error) {
      if (error instanceof TritonError) throw error;
      const text = `cannot read the format of the answer: ${reasonOf(error)}`;
      throw errorFor("INVALID_INPUT", text, { cause: error });
    }
  }

  #grammarOf(format: GrammarFormat): {
    readonly root: Part;
    readonly regexes: Regexes;
    readonly plainChars: ReadonlySet<Regex>;
  } {
    const { regexes } = this.#text;
    regexes.beginSearches();
    const plainChars = new Set<Regex>();
    switch (format.type) {
      case "json_object":
        return this.#ofSchema({ type: "object" }, false);
      case "json_schema":
        return this.#ofSchema(format.schema, format.strict !== false);
      case "regex": {
        const regex = patternRegex(format.pattern, regexes, new PlainLetters(regexes), true);
        if (!regexes.hasMatch(regex)) throw new UnheldGrammar("no text matches the pattern");
        return { root: { regex }, regexes, plainChars };
      }
      case "choice":
        return {
          root: { regex: regexes.any(...format.texts.map((text) => regexes.text(text))) },
          regexes,
          plainChars,
        };
      case "grammar":
        return { root: grammarOfText(format.grammar, regexes), regexes, plainChars };
    }
  }

  #ofSchema(schema: unknown, isStrict: boolean) {
    const grammar = jsonGrammar(schema, isStrict, this.#text);
    if (grammar.unheld.length > 0) {
      const text = `the grammar of a JSON schema cannot hold ${grammar.unheld.join(", ")}`;
      if (this.warnUnheld === undefined)
        throw errorFor("INVALID_INPUT", `cannot read response_format: ${text}`);
      this.warnUnheld(`${text}: texts may break them`);
    }
    return grammar;
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof InvalidSchema || error instanceof UnheldGrammar) return error.message;
  if (error instanceof UnheldPattern) return `cannot hold a pattern with ${error.message}`;
  if (error instanceof TooComplex) return "it is too complex";
  if (error instanceof RangeError) return "it is nested too deeply";
  throw error;
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
export interface TokenConstraint {
  /**
   * Resolves to the tokens that the next step may sample: bit `id & 31` of word `id >> 5` is 1 if the token is allowed.
   * The mask has at least one bit set until the constraint is finished, and bits for the whole width of the logits.
   * Called right after {@link accept}, it need not wait for the next scores. Two calls without `accept` between them
   * give the same array, which must not be changed.
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

/**
 * Reads the vocabulary for constraints from the content of `tokenizer.json`. Special tokens get an empty spelling,
 * which no format allows. `size` is the width of the model's logits.
 *
 * @throws TritonError INVALID_ARG for a tokenizer whose tokens do not join to a text as they are, such as WordPiece
 */
export function readConstraintVocabulary(tokenizer: unknown, size?: number): ConstraintVocabulary {
  const { model, decoder, added_tokens: added = [] } = tokenizer as TokenizerJson;
  if (model?.type !== undefined && model.type !== "BPE" && model.type !== "Unigram") {
    const text = `cannot limit answers to a format: expected a tokenizer of the type BPE or Unigram, got ${model.type}`;
    throw new TritonError("INVALID_ARG", text);
  }
  const spelling = tokenSpelling(decoder);
  const tokens: string[] = [];
  for (const [token, id] of vocabularyEntries(model?.vocab)) tokens[id] = token;
  const spell = ADDED_TOKEN_SPELLINGS[spelling];
  for (const { id, content, special } of added) tokens[id] = special ? "" : spell(content);
  // Ids without a token.
  for (let id = 0; id < tokens.length; id++) tokens[id] ??= "";
  return { tokens, spelling, size: Math.max(size ?? 0, tokens.length) };
}

function vocabularyEntries(vocabulary: unknown): Iterable<readonly [string, number]> {
  if (Array.isArray(vocabulary)) {
    return vocabulary.map((entry: readonly [string, number], id) => [entry[0], id] as const);
  }
  if (typeof vocabulary === "object" && vocabulary !== null)
    return Object.entries(vocabulary as Record<string, number>);
  const text = 'cannot read tokenizer.json: expected "model.vocab", an object or an array';
  throw new TritonError("INVALID_ARG", text);
}

/** Spellings of tokens that were added, which are plain text in the file. */
const ADDED_TOKEN_SPELLINGS: Readonly<Record<TokenSpelling, (text: string) => string>> = {
  byte_level: (text) => spellingOfBytes(new TextEncoder().encode(text)),
  byte_fallback: (text) => text.replaceAll(" ", "▁"),
  raw: (text) => text,
};

class GrammarConstraint implements TokenConstraint {
  #mask: Promise<Int32Array> | undefined;
  #state: GrammarState | undefined;
  readonly #scalars = new JsonScalars();
  finished = false;

  constructor(private readonly grammar: TokenGrammar) {
    this.#state = grammar.machine.start;
  }

  allowed(): Promise<Int32Array> {
    this.#mask ??= this.#next();
    return this.#mask;
  }

  accept(token: number): boolean {
    const state = this.#open();
    this.finished = state.mayEnd && this.grammar.endTokens.includes(token);
    if (!this.finished) {
      const next = this.grammar.after(state, token, this.#scalars);
      if (next === undefined) {
        const text = `cannot accept token ${token}: expected one that the format allows`;
        throw new TritonError("INTERNAL", text);
      }
      this.#state = next;
    }
    this.#mask = undefined;
    return this.finished;
  }

  release(): void {
    this.#state = undefined;
    this.#mask = undefined;
  }

  async #next(): Promise<Int32Array> {
    const mask = this.#maskOf(this.#open());
    if (mask.some((word) => word !== 0)) return mask;
    const text =
      "cannot continue the answer in its format: expected a token for it in the model's vocabulary, got none";
    throw new TritonError("INVALID_ARG", text);
  }

  #maskOf(state: GrammarState): Int32Array {
    try {
      return this.grammar.mask(state);
    } catch (error) {
      const text = `cannot continue the answer in its format: ${reasonOf(error)}`;
      throw new TritonError("INVALID_ARG", text, { cause: error });
    }
  }

  #open(): GrammarState {
    if (this.#state !== undefined && !this.finished) return this.#state;
    const state = this.finished ? "finished" : "released";
    throw new TritonError("INTERNAL", `cannot use the constraint of an answer: it is ${state}`);
  }
}
