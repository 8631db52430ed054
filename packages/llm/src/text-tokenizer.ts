import type { Tokenizer } from "@huggingface/tokenizers";
import { errorFor, TritonError } from "@tritonjs/protocol";
import { PatternFault } from "./linear-pattern.js";
import { type Normalize, takeCharsmap } from "./sentencepiece-normalizer.js";
import { encoderOf, SECTION, type TokenModel, WordKeeper, withFusedUnknown } from "./token-models.js";
import {
  type AddedToken,
  bytesOfPiece,
  bytesOfSpelling,
  pieceOfByte,
  type TokenizerJson,
  type TokenSpelling,
  tokenSpelling,
} from "./token-spelling.js";
import { openBounded, shrinkOf } from "./tokenizer-limits.js";
import { allParts, type Parts } from "./turns.js";

interface TokenizerFiles {
  readonly tokenizer: object;
  /** Changes a text before the tokenizer gets it. */
  readonly normalize?: Normalize | undefined;
  /** `tokenizer_config.json`; an empty object if the model has none. */
  readonly config: object;
}

/** Tokens of a text without those that a tokenizer's files put around it: their spelling and their numbers. */
export interface SplitText {
  readonly tokens: readonly string[];
  readonly ids: readonly number[];
}

/** Tokenizer of a model: between text and token numbers. */
export class TextTokenizer {
  /** Spelling of each token as in `tokenizer.json`, by number. */
  readonly tokens: readonly string[];
  readonly spelling: TokenSpelling;
  readonly #tokenizer: Tokenizer;
  readonly #processor: Tokenizer["post_processor"];
  readonly #model: TokenModel;
  readonly #words: WordKeeper;
  readonly #encodeWords: (words: readonly string[]) => Parts<string[]>;
  /** Numbers of tokens that were added to the vocabulary, by their spelling and by what the normalizer makes of it. */
  readonly #addedIds = new Map<string, number>();
  /** Bytes of a text for which there is one token at least; Infinity if that cannot be told. */
  readonly #bytesOfToken: number;
  /** True if added tokens take the white space beside them with them. */
  readonly #strips: boolean;
  readonly #special: ReadonlySet<number>;
  /** Text of tokens that were added to the vocabulary, by number. They are not spelled like the others. */
  readonly #added: ReadonlyMap<number, string>;
  readonly #bytes = new Map<number, Uint8Array>();
  /** The unknown token of a model of Unigram that has tokens of bytes. */
  readonly #unknown: number | undefined;
  readonly #hasByteTokens: boolean;
  readonly #normalize: Normalize | undefined;

  /** @throws TritonError INVALID_ARG for a tokenizer that is not supported */
  constructor({ tokenizer: given, config, normalize }: TokenizerFiles) {
    const taken = takeCharsmap(given);
    const { json } = taken;
    this.#normalize = normalize ?? taken.normalize;
    const { decoder, added_tokens, model } = json;
    const added = added_tokens ?? [];
    try {
      this.#tokenizer = openTokenizer(json, config);
      this.tokens = tokensOf(this.#tokenizer, json);
      this.#model = this.#tokenizer.model as TokenModel;
      this.#encodeWords = encoderOf(this.#model);
      // The library splits texts into words, and does neither encode them nor put tokens around them.
      this.#words = new WordKeeper(this.#model);
      this.#tokenizer.model = this.#words;
      this.#processor = this.#tokenizer.post_processor;
      this.#tokenizer.post_processor = null;
      for (const { content, id, special, normalized = !special } of added) {
        this.#addedIds.set(content, id);
        if (normalized) this.#addedIds.set(this.#tokenizer.normalizer?.normalize(content) ?? content, id);
      }
      this.#encoded("a", true);
    } catch (error) {
      const text = `cannot read tokenizer.json: expected a tokenizer of Hugging Face, got ${(error as Error).message}`;
      throw errorFor("INVALID_MODEL", text, { cause: error });
    }
    this.spelling = tokenSpelling(decoder);
    // Runs of spaces are added tokens of Gemma.
    const textOf = ({ content, special }: AddedToken) =>
      special || this.spelling !== "byte_fallback" ? content : content.replaceAll("▁", " ");
    this.#added = new Map(added.map((token) => [token.id, textOf(token)]));
    this.#special = new Set(added.filter(({ special }) => special).map(({ id }) => id));
    const isUnigram = model?.type === "Unigram" || Array.isArray(model?.vocab);
    this.#unknown = isUnigram && model?.byte_fallback === true ? (model.unk_id ?? undefined) : undefined;
    this.#hasByteTokens =
      model?.byte_fallback === true || JSON.stringify(decoder ?? null).includes("ByteFallback");
    const isByteLevel = this.spelling === "byte_level";
    const bytesOf = (token: string) => (isByteLevel ? token.length : Buffer.byteLength(token));
    const longest = [...this.tokens, ...added.map(({ content }) => content)].reduce(
      (most, token) => Math.max(most, bytesOf(token)),
      1,
    );
    this.#bytesOfToken = longest * shrinkOf(json, config);
    this.#strips = added.some(({ lstrip, rstrip }) => lstrip === true || rstrip === true);
  }

  /** Makes the first change of a text, that of SentencePiece. The methods below that say so take its result. */
  *normalizeInParts(text: string): Parts<string> {
    return this.#normalize === undefined ? text : yield* this.#normalize(text);
  }

  /**
   * Smallest number of tokens that a text may have, which its length alone tells. 0 for a tokenizer that leaves parts of
   * texts out, or that has one token for any number of unknown characters.
   *
   * @param normalized result of {@link normalizeInParts}
   */
  fewestTokens(normalized: string): number {
    if (this.#bytesOfToken === Number.POSITIVE_INFINITY) return 0;
    const kept = this.#strips ? normalized.replace(/\s+/g, "") : normalized;
    return Math.ceil(Buffer.byteLength(kept) / this.#bytesOfToken);
  }

  /**
   * @param addSpecialTokens true to add the tokens that begin every text, as the tokenizer's files say
   * @throws TritonError INTERNAL for a text with a part for which the files have no token
   */
  encode(text: string, addSpecialTokens: boolean): number[] {
    return [...this.#encoded(text, addSpecialTokens).ids];
  }

  /**
   * Encodes like {@link encode}, in parts. A long word of BPE or Unigram is several parts, one of WordPiece is a single one.
   *
   * @param normalized result of {@link normalizeInParts}
   */
  *encodeInParts(normalized: string, addSpecialTokens: boolean): Parts<number[]> {
    const { ids } = yield* this.#encodeNormalized(normalized, addSpecialTokens);
    return [...ids];
  }

  /**
   * Splits a text into tokens, without special tokens around them.
   *
   * @throws TritonError like {@link encode}
   */
  split(text: string): SplitText {
    return this.#encoded(text, false);
  }

  /**
   * Splits like {@link split}, in parts.
   *
   * @param normalized result of {@link normalizeInParts}
   */
  splitInParts(normalized: string): Parts<SplitText> {
    return this.#encodeNormalized(normalized, false);
  }

  #encoded(text: string, addSpecialTokens: boolean): SplitText {
    return allParts(this.#encodeNormalized(allParts(this.normalizeInParts(text)), addSpecialTokens));
  }

  /** @throws TritonError INVALID_ARG for a text for which a pattern of the files takes too long */
  *#encodeNormalized(normalized: string, addSpecialTokens: boolean): Parts<SplitText> {
    const model = this.#model;
    const tokens: string[] = [];
    for (const section of this.#splitWords(normalized)) {
      if (typeof section === "string") tokens.push(section);
      else {
        const found = yield* this.#encodeWords(section);
        for (const token of withFusedUnknown(model, found)) tokens.push(token);
      }
    }
    const whole: string[] = this.#processor?.(tokens, null, addSpecialTokens).tokens ?? tokens;
    const ids = whole.map(
      (token) => this.#addedIds.get(token) ?? model.tokens_to_ids.get(token) ?? model.unk_token_id!,
    );
    const encoded = { tokens: whole, ids };
    const found = this.#unknown === undefined ? encoded : this.#withBytes(encoded, this.#unknown);
    assertTokens(found.ids);
    return found;
  }

  /** Added tokens of a text, and the words of each section between them. */
  #splitWords(text: string): readonly (string | readonly string[])[] {
    try {
      const marks: readonly string[] = this.#tokenizer.tokenize(text);
      const sections = this.#words.take();
      let next = 0;
      return marks.map((mark) => (mark === SECTION ? sections[next++]! : mark));
    } catch (error) {
      this.#words.take();
      if (!(error instanceof PatternFault)) throw error;
      throw errorFor(
        "INVALID_INPUT",
        `cannot split a text with a pattern of tokenizer.json: ${error.message}`,
      );
    }
  }

  /** Puts the bytes of unknown characters in their place, which the library leaves out for models of Unigram. */
  #withBytes({ ids, tokens }: SplitText, unknown: number): SplitText {
    const parts = ids.map((id, i): SplitText => {
      const token = tokens[i]!;
      const kept = { tokens: [token], ids: [id] };
      if (id !== unknown || token === this.tokens[unknown]) return kept;
      const pieces = Array.from(encoder.encode(token), pieceOfByte);
      const bytes = pieces.map((piece) => this.idOf(piece));
      return bytes.every((byte) => byte !== undefined) ? { tokens: pieces, ids: bytes } : kept;
    });
    return { tokens: parts.flatMap((part) => part.tokens), ids: parts.flatMap((part) => part.ids) };
  }

  /**
   * Puts special tokens around one or two texts, as the tokenizer's files say.
   *
   * @returns numbers of the tokens, and for each the number of the text that it belongs to, as the files define it
   */
  join(
    first: SplitText,
    second?: SplitText,
  ): { readonly ids: readonly number[]; readonly types: readonly number[] } {
    const processor = this.#processor;
    const parts = [first, ...(second === undefined ? [] : [second])];
    if (processor === null) return unprocessed(parts);
    const found = processor([...first.tokens], second === undefined ? null : [...second.tokens], true);
    // A processor of byte-level vocabularies only sets offsets, and leaves the texts apart.
    if (found.tokens_pair || found.token_type_ids === undefined) return unprocessed(parts);
    const known = new Map(parts.flatMap(({ tokens, ids }) => tokens.map((token, i) => [token, ids[i]!])));
    const ids = found.tokens.map((token: string) => known.get(token) ?? this.idOf(token));
    assertTokens(ids);
    // The library counts the second text as 1, but models of this processor know one type only.
    const oneType = processor.config.type === "RobertaProcessing";
    return { ids, types: oneType ? ids.map(() => 0) : found.token_type_ids };
  }

  /** Decodes tokens with the tokenizer's own decoder. Special tokens are left out, unless `withSpecial` is true. */
  decode(ids: readonly number[], withSpecial = false): string {
    const known = ids.filter((id) => (withSpecial || !this.isSpecial(id)) && this.tokens[id] !== undefined);
    if (known.length === 0) return "";
    return this.#tokenizer.decode(known, {
      skip_special_tokens: false,
      clean_up_tokenization_spaces: false,
    });
  }

  idOf(token: string): number | undefined {
    return this.#tokenizer.token_to_id(token);
  }

  /** True for tokens that are not text, such as the end token. */
  isSpecial(id: number): boolean {
    return this.#special.has(id);
  }

  /** Text of a token that was added to the vocabulary; undefined for any other. */
  addedText(id: number): string | undefined {
    return this.#added.get(id);
  }

  /** Bytes that a token adds to a text, with the space before a word. Empty for numbers that have no token. */
  bytesOf(id: number): Uint8Array {
    let bytes = this.#bytes.get(id);
    if (bytes === undefined) {
      bytes = this.#readBytes(id);
      this.#bytes.set(id, bytes);
    }
    return bytes;
  }

  #readBytes(id: number): Uint8Array {
    const spelling = this.tokens[id] ?? "";
    const added = this.addedText(id);
    if (added !== undefined) return encoder.encode(added);
    switch (this.spelling) {
      case "byte_level":
        return bytesOfSpelling(spelling) ?? encoder.encode(spelling);
      case "byte_fallback":
        return bytesOfPiece(spelling, this.#hasByteTokens);
      case "raw":
        return encoder.encode(this.decode([id]));
    }
  }

  /** One token as text by itself. Bytes that are not a character show as U+FFFD. */
  textOf(id: number): string {
    return this.addedText(id) ?? new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.bytesOf(id));
  }
}

const encoder = new TextEncoder();

/** Numbers of tokens are below this, four times the largest vocabularies: a list of all tokens takes memory for gaps. */
const MAX_TOKENS = 2 ** 22;

function openTokenizer(json: TokenizerJson, config: object): Tokenizer {
  // Before the tokenizer makes a list of them. A list of tokens has their numbers as indices.
  const { vocab = {} } = json.model ?? {};
  if (!Array.isArray(vocab)) Object.values(vocab).forEach(assertTokenNumber);
  for (const { id } of json.added_tokens ?? []) assertTokenNumber(id);
  return openBounded(json, config);
}

/** Spellings by number. A number without a token, which some vocabularies have, is an empty text. */
function tokensOf(tokenizer: Tokenizer, { model, added_tokens }: TokenizerJson): string[] {
  const vocab = model?.vocab ?? {};
  const ids: readonly unknown[] = Array.isArray(vocab) ? [vocab.length - 1] : Object.values(vocab);
  const last = [...ids, ...(added_tokens ?? []).map(({ id }) => id)].reduce<number>(
    (most, id) => Math.max(most, id as number),
    -1,
  );
  return Array.from({ length: last + 1 }, (_, id) => {
    const token: unknown = tokenizer.id_to_token(id);
    if (token === undefined || typeof token === "string") return token ?? "";
    throw new TypeError(`token ${id} of type ${typeof token}`);
  });
}

function assertTokenNumber(id: unknown): void {
  if (!isTokenNumber(id))
    throw new RangeError(`the token number ${id}, not an integer from 0 to ${MAX_TOKENS - 1}`);
}

/** @throws TritonError INTERNAL for a text with a part for which the files have no token */
function assertTokens(ids: readonly unknown[]): asserts ids is readonly number[] {
  if (ids.every(isTokenNumber)) return;
  const wrong = ids.find((id) => !isTokenNumber(id));
  throw new TritonError(
    "INTERNAL",
    `cannot encode the text: expected token numbers of tokenizer.json, got ${wrong}`,
  );
}

/** Texts of a tokenizer that adds nothing to them. */
function unprocessed(parts: readonly SplitText[]) {
  return {
    ids: parts.flatMap(({ ids }) => ids),
    types: parts.flatMap(({ ids }, number) => ids.map(() => number)),
  };
}

function isTokenNumber(id: unknown): boolean {
  return Number.isInteger(id) && (id as number) >= 0 && (id as number) < MAX_TOKENS;
}

/** Turns the tokens of one text into pieces of text. A piece never ends inside a character. */
export interface TextStream {
  /** Adds a token. Returns the text that is complete with it, often none. */
  push(id: number): string;
  /** Ends the text. Returns the rest; bytes that are not a character are U+FFFD. */
  end(): string;
}

/** Special tokens that are part of the text: all of them, or those of a set. */
export type ShownSpecialTokens = "all" | ReadonlySet<number>;

/** @param shown special tokens that are part of the text */
export function openTextStream(tokenizer: TextTokenizer, shown: ShownSpecialTokens): TextStream {
  return tokenizer.spelling === "raw" ? new WindowStream(tokenizer, shown) : new ByteStream(tokenizer, shown);
}

/**
 * Text of a vocabulary in which each token stands for certain bytes. The space before a word is one of them, also for
 * the first word: the text continues a prompt.
 */
class ByteStream implements TextStream {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });

  constructor(
    private readonly tokenizer: TextTokenizer,
    private readonly shown: ShownSpecialTokens,
  ) {}

  push(id: number): string {
    const added = this.tokenizer.addedText(id);
    if (added === undefined) return this.#decoder.decode(this.tokenizer.bytesOf(id), { stream: true });
    if (this.tokenizer.isSpecial(id) && this.shown !== "all" && !this.shown.has(id)) return "";
    return this.end() + added;
  }

  end(): string {
    return this.#decoder.decode();
  }
}

/** Tokens that are decoded together with new ones: a token's text may depend on the tokens before it. */
const CONTEXT = 4;

/** U+FFFD at the end may be part of a character whose other bytes are still to come. */
const UNFINISHED = "\ufffd";

/**
 * Text of other vocabularies. The decoder sees the last tokens again with each new one, because it may, for instance,
 * leave out the space before the first word.
 */
class WindowStream implements TextStream {
  #window: number[] = [];
  /** Length of the window's text that was returned. */
  #shown = 0;

  constructor(
    private readonly tokenizer: TextTokenizer,
    private readonly shown: ShownSpecialTokens,
  ) {}

  push(id: number): string {
    if (this.tokenizer.isSpecial(id)) {
      if (this.shown !== "all" && !this.shown.has(id)) return "";
      const text = this.end() + this.tokenizer.textOf(id);
      this.#window = [];
      this.#shown = 0;
      return text;
    }
    this.#window.push(id);
    const text = this.tokenizer.decode(this.#window);
    const unfinished = text.endsWith(UNFINISHED);
    const piece = text.slice(this.#shown, unfinished ? -1 : undefined);
    this.#shown += piece.length;
    if (!unfinished && this.#window.length > 2 * CONTEXT) this.#forget();
    return piece;
  }

  end(): string {
    const rest = this.tokenizer.decode(this.#window).slice(this.#shown);
    this.#shown += rest.length;
    return rest;
  }

  /** Drops the oldest tokens, if the others do not end inside a character without them. */
  #forget(): void {
    const kept = this.#window.slice(-CONTEXT);
    const text = this.tokenizer.decode(kept);
    if (text.startsWith(UNFINISHED)) return;
    this.#window = kept;
    this.#shown = text.length;
  }
}
