import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { findInstalled } from "@tritonjs/core/internal/worker";
import { errorFor, TritonError } from "@tritonjs/protocol";
import { spellingOfBytes, type TokenizerJson, type TokenSpelling, tokenSpelling } from "../token-spelling.js";
import { holdSchema } from "./held-schema.js";
import type { ResponseFormat } from "./sampling-parameters.js";

/** Largest number of cached grammars. One of a few kilobytes takes 0.1 to 1 s to compile for 128,000 tokens. */
const MAX_GRAMMARS = 32;
/** Largest number of matchers of a grammar that are kept for later texts. */
const MAX_IDLE_MATCHERS = 16;

/** A copy of the library with the vocabulary. */
interface OpenVocabulary {
  readonly library: WebXgrammar;
  readonly compiler: GrammarCompiler;
}

interface CachedGrammar {
  readonly compiled: Disposable;
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
  #opened: Promise<OpenVocabulary> | undefined;
  #reader: XgrammarInstance | undefined;
  /** In the order of use, the latest last. */
  readonly #grammars = new Map<string, Promise<CachedGrammar>>();

  /**
   * @param endTokens ids that end a text. At least one is needed
   * @param warnUnheld receives a warning of a schema with keywords that a grammar cannot hold, which then compiles
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
   * @throws TritonError INVALID_ARG for a format that is too long, cannot be compiled or held by a grammar; UNAVAILABLE if the package is
   * not installed
   */
  async constrain(format: ResponseFormat): Promise<TokenConstraint | undefined> {
    if (format.type === "text") return undefined;
    const key = JSON.stringify(format);
    if (key.length > MAX_CHARACTERS) {
      const text = `cannot read response_format: expected a grammar of at most ${MAX_CHARACTERS} characters, got ${key.length}`;
      throw errorFor("INVALID_INPUT", text);
    }
    const held = this.#grammars.has(key) ? format : this.#held(format);
    const { library, compiler } = await this.#open();
    const pending =
      this.#grammars.get(key) ??
      this.#compile(held, library, compiler).then((compiled) => ({ compiled, idle: [] }));
    this.#grammars.delete(key);
    this.#grammars.set(key, pending);
    try {
      const { compiled, idle } = await pending;
      this.#evict();
      const matcher = idle.pop() ?? (await library.GrammarMatcher.createGrammarMatcher(compiled));
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

  /** @throws TritonError INVALID_ARG that names the keywords which a grammar cannot hold */
  #held(format: GrammarFormat): GrammarFormat {
    if (format.type !== "json_schema") return format;
    const { schema, unheld } = holdSchema(format.schema);
    if (unheld.length > 0) {
      const text = `the grammar of a JSON schema cannot hold ${unheld.join(", ")}`;
      if (this.warnUnheld === undefined)
        throw errorFor("INVALID_INPUT", `cannot read response_format: ${text}`);
      this.warnUnheld(`${text}: texts may break them`);
    }
    return { ...format, schema };
  }

  #open(): Promise<OpenVocabulary> {
    this.#opened ??= this.#openVocabulary().catch((error: unknown) => {
      this.#opened = undefined;
      throw error;
    });
    return this.#opened;
  }

  async #openVocabulary(): Promise<OpenVocabulary> {
    const { tokens, spelling, size = tokens.length } = this.vocabulary;
    const { library } = openXgrammar();
    const info = await library.TokenizerInfo.createTokenizerInfo(
      tokens,
      spelling,
      false,
      size,
      this.endTokens,
    );
    const compiler = await library.GrammarCompiler.createGrammarCompiler(info, false);
    info.dispose();
    return { library, compiler };
  }

  /**
   * A grammar that the library cannot read aborts its instance, so grammars are first read by an instance of their own,
   * which is replaced after an abort. The instance with the vocabulary stays.
   *
   * @throws TritonError INVALID_ARG with the library's words for a grammar that it cannot read
   */
  async #compile(
    format: GrammarFormat,
    library: WebXgrammar,
    compiler: GrammarCompiler,
  ): Promise<Disposable> {
    this.#reader ??= openXgrammar();
    const reader = this.#reader;
    try {
      (await readGrammar(reader.library, format)).dispose();
    } catch (error) {
      if (this.#reader === reader) this.#reader = undefined;
      const why = reportedReason(reader.takeReport() ?? (error as Error).message);
      throw errorFor("INVALID_ARG", `cannot compile the format of the answer: ${why}`, { cause: error });
    }
    const grammar = await readGrammar(library, format);
    try {
      return await compiler.compileGrammar(grammar);
    } finally {
      grammar.dispose();
    }
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
  finished = false;

  /** `size` is the width of the logits. `giveBack` takes the matcher when the constraint is released. */
  constructor(
    private matcher: GrammarMatcher | undefined,
    readonly size: number,
    readonly giveBack: () => void,
  ) {}

  allowed(): Promise<Int32Array> {
    this.#mask ??= this.#next();
    return this.#mask;
  }

  accept(token: number): boolean {
    if (!this.#open().acceptToken(token)) {
      throw new TritonError("INTERNAL", `cannot accept token ${token}: expected one that the format allows`);
    }
    this.#mask = undefined;
    this.finished = this.#open().isTerminated();
    return this.finished;
  }

  release(): void {
    if (this.matcher === undefined) return;
    this.matcher.reset();
    this.matcher = undefined;
    this.giveBack();
  }

  async #next(): Promise<Int32Array> {
    // The library aborts when it is asked after the end.
    const mask = await this.#open().getNextTokenBitmask();
    // It also sets bits of the last word that have no token.
    const used = this.size & 31;
    const last = mask.length - 1;
    if (used !== 0) mask[last] = (mask[last] as number) & ((1 << used) - 1);
    if (mask.some((word) => word !== 0)) return mask;
    const text =
      "cannot continue the answer in its format: expected a token for it in the model's vocabulary, got none";
    throw new TritonError("INVALID_ARG", text);
  }

  #open(): GrammarMatcher {
    if (this.matcher !== undefined && !this.finished) return this.matcher;
    const state = this.finished ? "finished" : "released";
    throw new TritonError("INTERNAL", `cannot use the constraint of an answer: it is ${state}`);
  }
}

/** Longest schema, pattern or grammar, in characters. Its compilation takes time in proportion. */
const MAX_CHARACTERS = 65_536;

/**
 * White space that an answer may have in a row between the parts of its JSON. Without a limit, a small model may write
 * nothing else until its tokens are spent.
 */
const MAX_WHITE_SPACE = 20;

type GrammarFormat = Exclude<ResponseFormat, { type: "text" }>;

/** Reads the grammar of a format. Grammars are in xgrammar's EBNF. */
function readGrammar({ Grammar }: WebXgrammar, format: GrammarFormat): Promise<Disposable> {
  const ofSchema = (schema: unknown, strict: boolean) =>
    Grammar.fromJSONSchema(JSON.stringify(schema), true, 2, [",", ":"], strict, MAX_WHITE_SPACE);
  switch (format.type) {
    case "json_object":
      return ofSchema({ type: "object" }, false);
    case "json_schema":
      return ofSchema(format.schema, format.strict !== false);
    case "regex":
      return Grammar.fromStructuralTag({ type: "structural_tag", format });
    case "choice":
      return Grammar.fromEBNF(`root ::= ${format.texts.map(quotedInEbnf).join(" | ")}`);
    case "grammar":
      return Grammar.fromEBNF(format.grammar);
  }
}

function quotedInEbnf(text: string): string {
  const escaped = text
    .replace(/[\\"]/g, "\\$&")
    .replace(/\n/g, "\\n")
    .replace(/\r/g, "\\r")
    .replace(/\t/g, "\\t");
  return `"${escaped}"`;
}

/** Message of a report, without the line of the library's source and the condition that failed. */
function reportedReason(report: string): string {
  return report
    .replace(/^\[FATAL\] \S+:\d+: /, "")
    .replace(/^Check failed: .*? is false: /, "")
    .trim();
}

const PACKAGE = "@mlc-ai/web-xgrammar";

/** Object of the library, whose memory `dispose` frees. */
interface Disposable {
  dispose(): void;
}

interface GrammarMatcher extends Disposable {
  acceptToken(token: number): boolean;
  getNextTokenBitmask(): Promise<Int32Array>;
  isTerminated(): boolean;
  reset(): void;
}

interface GrammarCompiler extends Disposable {
  compileGrammar(grammar: Disposable): Promise<Disposable>;
}

/** The library, with the parts of it that are used. */
interface WebXgrammar {
  readonly Grammar: {
    fromEBNF(text: string): Promise<Disposable>;
    fromJSONSchema(
      schema: string,
      anyWhitespace: boolean,
      indent: number,
      separators: [string, string],
      strict: boolean,
      maxWhitespace?: number,
    ): Promise<Disposable>;
    fromStructuralTag(tag: object): Promise<Disposable>;
  };
  readonly TokenizerInfo: {
    createTokenizerInfo(
      tokens: readonly string[],
      spelling: string,
      prependSpace: boolean,
      size: number,
      endTokens: readonly number[],
    ): Promise<Disposable>;
  };
  readonly GrammarCompiler: {
    createGrammarCompiler(info: Disposable, cache: boolean): Promise<GrammarCompiler>;
  };
  readonly GrammarMatcher: {
    createGrammarMatcher(compiled: Disposable): Promise<GrammarMatcher>;
  };
}

/** A copy of the library with a memory of its own. */
interface XgrammarInstance {
  readonly library: WebXgrammar;
  /** Returns the last report of the library, which replaces an error message. The call clears it. */
  takeReport(): string | undefined;
}

/**
 * Makes an instance of `@mlc-ai/web-xgrammar`. Release 0.1.27 of it cannot be imported: it is a script of the UMD kind
 * in a package that says `"type": "module"`. So this runs the script as a function. Without `process`, the script takes
 * Node for an engine of its own kind, and needs neither `require` nor `import()`, which functions of test runners lack.
 *
 * The library aborts instead of throwing, and writes the reason to the console. So the instance has a console of its
 * own.
 *
 * @throws TritonError UNAVAILABLE if the package is not installed
 */
function openXgrammar(): XgrammarInstance {
  const file = findPackage();
  let report: string | undefined;
  const console = {
    log: () => {},
    warn: () => {},
    error: (...values: unknown[]) => {
      const text = values.join(" ");
      // The last line only says that the library aborted.
      if (!text.startsWith("Aborted(")) report = text;
    },
  };
  const module = { exports: {} as WebXgrammar };
  scriptOf(file)(module.exports, module, { baseURI: pathToFileURL(file).href }, undefined, console);
  return {
    library: module.exports,
    takeReport() {
      const taken = report;
      report = undefined;
      return taken;
    },
  };
}

const scripts = new Map<string, (...values: unknown[]) => void>();

/** The script of the library as a function, compiled only once because it is a megabyte. */
function scriptOf(file: string): (...values: unknown[]) => void {
  let script = scripts.get(file);
  if (script === undefined) {
    const names = ["exports", "module", "document", "process", "console"];
    const source = `${readFileSync(file, "utf8")}\n//# sourceURL=${pathToFileURL(file).href}`;
    script = new Function(...names, source) as (...values: unknown[]) => void;
    scripts.set(file, script);
  }
  return script;
}

/** @throws TritonError UNAVAILABLE if the package is not installed */
function findPackage(): string {
  const found = findInstalled(PACKAGE, import.meta.url);
  if (found !== undefined) return found;
  const text = `cannot limit the answer to a format: expected the package ${PACKAGE}, which is not installed; install it, or leave out response_format`;
  throw errorFor("PACKAGE_NOT_INSTALLED", text);
}
