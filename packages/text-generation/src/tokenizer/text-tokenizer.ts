import { Tokenizer } from "@huggingface/tokenizers";
import { TritonError } from "@tritonjs/protocol";
import { bytesOfSpelling } from "./byte-letters.js";
import { type TokenSpelling, tokenSpelling } from "./token-spelling.js";

/** Contents of a model's tokenizer files. */
export interface TokenizerFiles {
  /** `tokenizer.json`. */
  readonly tokenizer: object;
  /** `tokenizer_config.json`; an empty object if the model has none. */
  readonly config: object;
}

/** Tokenizer of a model: between text and token numbers. */
export class TextTokenizer {
  /** Spelling of each token as in `tokenizer.json`, by number. */
  readonly tokens: readonly string[];
  readonly spelling: TokenSpelling;
  /** Bytes of the longest token, so that a text has at least this fraction of its bytes as tokens. */
  readonly longestTokenBytes: number;
  readonly #tokenizer: Tokenizer;
  readonly #special: ReadonlySet<number>;
  /** Text of tokens that were added to the vocabulary, by number. They are not spelled like the others. */
  readonly #added: ReadonlyMap<number, string>;
  readonly #bytes = new Map<number, Uint8Array>();

  /** @throws TritonError INVALID_ARG for a tokenizer that is not supported */
  constructor({ tokenizer, config }: TokenizerFiles) {
    this.#tokenizer = open(tokenizer, config);
    const { added_tokens: added = [], decoder } = tokenizer as {
      added_tokens?: readonly { id: number; content: string; special?: boolean }[];
      decoder?: unknown;
    };
    this.#added = new Map(added.map(({ id, content }) => [id, content]));
    this.#special = new Set(added.filter(({ special }) => special).map(({ id }) => id));
    const tokens: string[] = [];
    let longest = 1;
    for (const [token, id] of this.#tokenizer.get_vocab(true)) {
      tokens[id] = token;
      longest = Math.max(longest, token.length);
    }
    this.tokens = Array.from(tokens, (token) => token ?? "");
    this.spelling = tokenSpelling(decoder);
    this.longestTokenBytes = longest * (this.spelling === "byte_level" ? 1 : 4);
  }

  /** @param addSpecialTokens true to add the tokens that begin every text, as the tokenizer's files say */
  encode(text: string, addSpecialTokens: boolean): number[] {
    return this.#tokenizer.encode(text, { add_special_tokens: addSpecialTokens }).ids;
  }

  /** Decodes tokens with the tokenizer's own decoder. Special tokens are left out. */
  decode(ids: readonly number[]): string {
    const known = ids.filter((id) => !this.isSpecial(id) && this.tokens[id] !== undefined);
    if (known.length === 0) return "";
    return this.#tokenizer.decode(known, {
      skip_special_tokens: false,
      clean_up_tokenization_spaces: false,
    });
  }

  /** Number of the token with a text; undefined if there is none. */
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

  /** Bytes of a token of a byte-level vocabulary. Empty for numbers that have no token. */
  bytesOf(id: number): Uint8Array {
    const known = this.#bytes.get(id);
    if (known !== undefined) return known;
    const spelling = this.tokens[id] ?? "";
    const bytes = bytesOfSpelling(spelling) ?? new TextEncoder().encode(spelling);
    this.#bytes.set(id, bytes);
    return bytes;
  }

  /** One token as text by itself. Bytes that are not a character show as U+FFFD. */
  textOf(id: number): string {
    const added = this.addedText(id);
    if (added !== undefined) return added;
    return this.spelling === "byte_level" ? new TextDecoder().decode(this.bytesOf(id)) : this.decode([id]);
  }
}

function open(tokenizer: object, config: object): Tokenizer {
  try {
    return new Tokenizer(tokenizer, config);
  } catch (error) {
    throw new TritonError(
      "INVALID_ARG",
      `cannot read tokenizer.json: expected a tokenizer of Hugging Face, got ${(error as Error).message}`,
      { reason: "INVALID_MODEL", cause: error },
    );
  }
}
