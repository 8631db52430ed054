import { errorFor } from "@tritonjs/protocol";
import type { ConstraintVocabulary } from "../structured/constraint-vocabulary.js";
import type { TokenProbability } from "../text-callback.js";
import { bytesOfPiece, bytesOfSpelling, type TokenSpelling } from "../token-spelling.js";
import type { LlamaModel, LlamaToken } from "./llama-module.js";

/** How the kinds of vocabularies in GGUF files spell their tokens. */
const SPELLINGS: Readonly<Record<string, TokenSpelling>> = {
  llama: "byte_fallback",
  gpt2: "byte_level",
  t5: "byte_fallback",
};

/** Longest part of a character that is held back, in tokens of one byte each. */
const LONGEST_CHARACTER = 4;

/** The tokens of a GGUF file. */
export class LlamaVocabulary {
  readonly #spellings: readonly string[];
  readonly #kind: string;
  /** Bytes of the longest token. */
  #longest: number | undefined;
  /** True for models whose special tokens take the white space beside them with them, by their name in llama.cpp. */
  readonly #strips: boolean;
  #ends: readonly LlamaToken[] | undefined;
  /** Token that ends a message of harmony. A text has several messages there, and ends with another token. */
  readonly #messageEnd: LlamaToken | undefined;

  constructor(private readonly model: LlamaModel) {
    const { model: kind = "", tokens = [] } = model.fileInfo.metadata.tokenizer?.ggml ?? {};
    const { general } = model.fileInfo.metadata;
    this.#strips = /phi-?3|jina/i.test(general?.name ?? "");
    this.#spellings = tokens;
    this.#kind = kind;
    const isHarmony = tokens.includes("<|return|>") && tokens.includes("<|call|>");
    this.#messageEnd = isHarmony ? this.idOf("<|end|>") : undefined;
  }

  get size(): number {
    return this.#spellings.length;
  }

  /** Tokens that end a text or a turn of a chat. */
  get endTokens(): readonly LlamaToken[] {
    this.#ends ??= this.#spellings.map((_, id) => id).filter((id) => this.isEnd(id));
    return this.#ends;
  }

  isEnd(token: LlamaToken): boolean {
    return token !== this.#messageEnd && this.model.isEogToken(token);
  }

  /**
   * Smallest number of tokens that a text may have, which its length alone tells. 0 for a vocabulary that may leave parts
   * of texts out. White space does not count where special tokens may take it with them.
   */
  fewestTokens(text: string): number {
    const kind = SPELLINGS[this.#kind];
    if (kind === undefined || this.#kind === "t5") return 0;
    this.#longest ??= this.#spellings.reduce(
      (most, one) => Math.max(most, kind === "byte_level" ? one.length : Buffer.byteLength(one)),
      1,
    );
    const kept = this.#strips ? text.replace(/\s+/g, "") : text;
    return Math.ceil(Buffer.byteLength(kept) / this.#longest);
  }

  /** The number of a special token that is spelled like this. */
  idOf(spelling: string): LlamaToken | undefined {
    const id = this.#spellings.indexOf(spelling);
    return id < 0 ? undefined : id;
  }

  /** @throws TritonError INVALID_ARG for a number that is not a token */
  checkTokens(tokens: readonly LlamaToken[], modelName: string): void {
    const wrong = tokens.find((id) => !(id >= 0 && id < this.size));
    if (wrong === undefined) return;
    const expected = `input 'input_ids' of model '${modelName}': expected token numbers from 0 to ${this.size - 1}`;
    throw errorFor("INVALID_INPUT", `${expected}, got ${wrong}`);
  }

  /** A token as answers show it. The bytes are there where the text does not show them. */
  describe(id: LlamaToken, logprob: number, rank: number): TokenProbability {
    const bytes = this.#bytesOf(id);
    const token = new TextDecoder().decode(bytes);
    return { id, logprob, rank, token, ...(token.includes("\ufffd") && { bytes }) };
  }

  #bytesOf(id: LlamaToken): Uint8Array {
    const spelling = this.#spellings[id] ?? "";
    const kind = SPELLINGS[this.#kind];
    const bytes = this.model.isSpecialToken(id)
      ? undefined
      : kind === "byte_level"
        ? bytesOfSpelling(spelling)
        : bytesOfPiece(spelling, kind === "byte_fallback");
    return bytes ?? new TextEncoder().encode(spelling);
  }

  /** The tokens as formats need them. @throws TritonError INVALID_ARG for a kind of vocabulary that has no bytes */
  forConstraints(): ConstraintVocabulary {
    const spelling = SPELLINGS[this.#kind];
    if (spelling === undefined) {
      const text = `cannot limit answers to a format: expected a vocabulary of the kind llama, gpt2 or t5, got ${this.#kind}`;
      throw errorFor("INVALID_INPUT", text);
    }
    return {
      tokens: this.#spellings.map((token, id) =>
        this.model.isSpecialToken(id) && !/^<0x..>$/.test(token) ? "" : token,
      ),
      spelling,
      size: this.size,
    };
  }
}

/** Turns the tokens of one text into pieces of text, none of which ends inside a character. */
export class LlamaTextStream {
  #pending: LlamaToken[] = [];
  readonly #last: LlamaToken[];

  /**
   * @param before tokens before the text: whether a space begins it depends on them
   * @param shown special tokens that are part of the text
   */
  constructor(
    private readonly model: LlamaModel,
    before: readonly LlamaToken[],
    private readonly shown: ReadonlySet<LlamaToken> | "all",
  ) {
    this.#last = before.slice(-LONGEST_CHARACTER);
  }

  push(token: LlamaToken): string {
    this.#pending.push(token);
    const text = this.#text();
    if (text.endsWith("\ufffd") && this.#pending.length < LONGEST_CHARACTER) return "";
    return this.#take(text);
  }

  /** The text that is still held back. */
  end(): string {
    return this.#pending.length === 0 ? "" : this.#take(this.#text());
  }

  #text(): string {
    const { shown } = this;
    const isShown = shown === "all" || this.#pending.some((token) => shown.has(token));
    return this.model.detokenize(this.#pending, isShown, this.#last);
  }

  #take(text: string): string {
    this.#last.push(...this.#pending);
    this.#last.splice(0, Math.max(0, this.#last.length - LONGEST_CHARACTER));
    this.#pending = [];
    return text;
  }
}
