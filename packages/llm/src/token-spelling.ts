/**
 * How the spelling of a vocabulary's tokens stands for bytes: "byte_level" as in GPT-2 and Llama 3, "byte_fallback" as
 * in SentencePiece ("▁" for a space, and perhaps `<0x0A>` for a byte), "raw" for plain text.
 */
export type TokenSpelling = "byte_level" | "byte_fallback" | "raw";

/** A token that was added to a vocabulary. */
export interface AddedToken {
  readonly id: number;
  readonly content: string;
  readonly special?: boolean;
  readonly normalized?: boolean;
  readonly lstrip?: boolean;
  readonly rstrip?: boolean;
}

/** Parts of `tokenizer.json` that are read here. */
export interface TokenizerJson {
  readonly model?: {
    readonly type?: string;
    readonly vocab?: object;
    readonly byte_fallback?: boolean;
    readonly unk_id?: number | null;
    readonly max_input_chars_per_word?: number;
  };
  readonly normalizer?: unknown;
  readonly pre_tokenizer?: unknown;
  readonly decoder?: unknown;
  readonly added_tokens?: readonly AddedToken[];
}

/**
 * Finds out how tokens are spelled from the decoder of `tokenizer.json`, which undoes the spelling. It may be a sequence
 * of decoders.
 */
export function tokenSpelling(decoder: unknown): TokenSpelling {
  const text = JSON.stringify(decoder ?? null);
  if (text.includes('"ByteLevel"')) return "byte_level";
  return /"ByteFallback"|"Metaspace"|▁/.test(text) ? "byte_fallback" : "raw";
}

/**
 * The letters of byte-level vocabularies: GPT-2 spells each byte as a printable character. Bytes that are printable
 * are themselves; the others follow from U+0100.
 */
const letters: readonly string[] = makeLetters();
const bytesOfLetters: ReadonlyMap<string, number> = new Map(letters.map((letter, byte) => [letter, byte]));

/** The spelling of bytes in a byte-level vocabulary. */
export function spellingOfBytes(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => letters[byte]).join("");
}

/** The bytes that a token of a byte-level vocabulary stands for; undefined if the token has other characters. */
export function bytesOfSpelling(spelling: string): Uint8Array | undefined {
  const bytes: number[] = [];
  for (const letter of spelling) {
    const byte = bytesOfLetters.get(letter);
    if (byte === undefined) return undefined;
    bytes.push(byte);
  }
  return Uint8Array.from(bytes);
}

/**
 * The `tokenizer.json` of a byte-level vocabulary whose pieces are in `vocab.json` and `merges.txt`, as for GPT-2.
 *
 * @param added tokens that are not in the vocabulary, or are special
 * @param first token that begins every text; empty for none
 */
export function byteLevelTokenizer(
  vocab: Readonly<Record<string, unknown>>,
  merges: string,
  added: readonly AddedToken[],
  first: string,
): Readonly<Record<string, unknown>> {
  const end = vocab["<|endoftext|>"];
  const isKnown = added.some(({ content }) => content === "<|endoftext|>");
  const special =
    typeof end === "number" && !isKnown ? [{ id: end, content: "<|endoftext|>", special: true }] : [];
  const firstId = added.find(({ content }) => content === first)?.id ?? vocab[first];
  const lines = merges.split(/\r?\n/).filter((line) => line !== "" && !line.startsWith("#version"));
  return {
    added_tokens: [...special, ...added],
    normalizer: null,
    pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true },
    post_processor: beginsWith(first, firstId),
    decoder: { type: "ByteLevel" },
    model: { type: "BPE", vocab, merges: lines },
  };
}

/** A `post_processor` that begins every text with a token; null without its number. */
export function beginsWith(token: string, id: unknown): object | null {
  if (token === "" || typeof id !== "number") return null;
  return {
    type: "TemplateProcessing",
    single: [{ SpecialToken: { id: token, type_id: 0 } }, { Sequence: { id: "A", type_id: 0 } }],
    pair: [],
    special_tokens: { [token]: { id: token, ids: [id], tokens: [token] } },
  };
}

const BYTE_PIECE = /^<0x([0-9A-F]{2})>$/;

/** The piece of a byte. */
export function pieceOfByte(byte: number): string {
  return `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
}

/**
 * The bytes that a piece of SentencePiece stands for. "▁" is a space.
 *
 * @param hasBytes true if pieces such as `<0x0A>` are bytes
 */
export function bytesOfPiece(piece: string, hasBytes: boolean): Uint8Array {
  const byte = hasBytes ? BYTE_PIECE.exec(piece) : null;
  if (byte !== null) return Uint8Array.of(Number.parseInt(byte[1]!, 16));
  return new TextEncoder().encode(piece.replaceAll("▁", " "));
}

function makeLetters(): string[] {
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte !== 173);
    return String.fromCodePoint(printable ? byte : next++);
  });
}
