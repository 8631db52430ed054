import { errorFor } from "@tritonjs/protocol";
import { charsmapNormalizer, type Normalize } from "./sentencepiece-normalizer.js";
import { type AddedToken, beginsWith } from "./token-spelling.js";
import type { Parts } from "./turns.js";

/** Kinds of pieces in a model of SentencePiece. */
const NORMAL = 1;
const UNKNOWN = 2;
const CONTROL = 3;
const USER_DEFINED = 4;

/** Kinds of models, by their numbers. Others have no counterpart in `tokenizer.json`. */
const UNIGRAM = 1;
const BPE = 2;

interface Piece {
  readonly text: string;
  readonly score: number;
  readonly type: number;
}

interface SentencePieceModel {
  readonly pieces: readonly Piece[];
  readonly kind: number;
  readonly byteFallback: boolean;
  readonly charsmap: Uint8Array | undefined;
  readonly addDummyPrefix: boolean;
  readonly removeExtraSpaces: boolean;
}

/** A tokenizer as the `tokenizer.json` that describes it, and what changes a text before. */
interface ReadTokenizer {
  readonly tokenizer: Readonly<Record<string, unknown>>;
  readonly normalize: Normalize;
}

/**
 * Reads a `tokenizer.model` of SentencePiece as the `tokenizer.json` that describes the same tokenizer.
 *
 * @param further tokens that the model's configuration adds. They replace those of the file with the same number
 * @param first control piece that begins every text; empty for none
 * @throws TritonError INVALID_ARG for a file that is not such a model, and for models of words or characters
 */
export function tokenizerOfSentencePiece(
  file: Uint8Array,
  path: string,
  further: readonly AddedToken[] = [],
  first = "<s>",
): ReadTokenizer {
  const model = readModel(file, path);
  const { pieces, kind, byteFallback, addDummyPrefix } = model;
  if (kind !== UNIGRAM && kind !== BPE) {
    throw notReadable(path, "a model of the type unigram or bpe", `the type ${kind}`);
  }
  const unknown = pieces.findIndex(({ type }) => type === UNKNOWN);
  const firstId = pieces.findIndex(({ text, type }) => text === first && type === CONTROL);
  const replaced = new Set(further.map(({ id }) => id));
  const own = pieces.flatMap(({ text, type }, id) =>
    (type === CONTROL || type === UNKNOWN || type === USER_DEFINED) && !replaced.has(id)
      ? [{ id, content: text, special: type !== USER_DEFINED, normalized: false }]
      : [],
  );
  const tokenizer = {
    added_tokens: [...own, ...further],
    normalizer: null,
    pre_tokenizer: null,
    post_processor: beginsWith(first, firstId < 0 ? undefined : firstId),
    decoder: {
      type: "Sequence",
      decoders: [
        { type: "Replace", pattern: { String: "▁" }, content: " " },
        { type: "ByteFallback" },
        { type: "Fuse" },
        ...(addDummyPrefix ? [{ type: "Strip", content: " ", start: 1, stop: 0 }] : []),
      ],
    },
    model:
      kind === UNIGRAM
        ? {
            type: "Unigram",
            unk_id: Math.max(0, unknown),
            vocab: pieces.map(({ text, score }) => [text, score]),
            byte_fallback: byteFallback,
          }
        : {
            type: "BPE",
            vocab: Object.fromEntries(pieces.map(({ text }, id) => [text, id])),
            merges: mergesOf(pieces),
            byte_fallback: byteFallback,
            fuse_unk: true,
            unk_token: pieces[unknown]?.text ?? null,
          },
  };
  return { tokenizer, normalize: normalizerOf(model, further) };
}

/**
 * Normalises a text as SentencePiece does before it splits it. Each part between control pieces and added tokens is
 * normalised by itself. Pieces that the user defined stay as they are.
 */
function normalizerOf(model: SentencePieceModel, further: readonly AddedToken[]): Normalize {
  const { pieces, charsmap, addDummyPrefix, removeExtraSpaces } = model;
  const mapped = charsmap === undefined ? undefined : charsmapNormalizer(charsmap);
  const textsOf = (...types: readonly number[]) =>
    pieces.flatMap(({ text, type }) => (types.includes(type) ? [text] : []));
  // Texts have spaces where pieces have "▁".
  const symbols = textsOf(USER_DEFINED).map((text) => text.replaceAll("▁", " "));
  const defined = anyOf(symbols);
  const added = further.flatMap(({ content }) =>
    symbols.includes(content.replaceAll("▁", " ")) ? [] : [content],
  );
  const control = anyOf([...textsOf(CONTROL, UNKNOWN), ...added]);
  // Every second part is a match of the expression.
  const withoutMatches = function* (text: string, expression: RegExp, normalize: Normalize): Parts<string> {
    const parts = text.split(expression);
    for (let i = 0; i < parts.length; i += 2) parts[i] = yield* normalize(parts[i]!);
    return parts.join("");
  };
  const normalizeText = function* (text: string): Parts<string> {
    const replaced = mapped === undefined ? text : yield* withoutMatches(text, defined, mapped);
    const spaced = removeExtraSpaces ? withoutSpaces(replaced).replace(/ {2,}/g, " ") : replaced;
    return spaced === "" ? "" : `${addDummyPrefix ? "▁" : ""}${spaced.replaceAll(" ", "▁")}`;
  };
  return (text) => withoutMatches(text, control, normalizeText);
}

/** Removes spaces at the beginning, and those and "▁" at the end. */
function withoutSpaces(text: string): string {
  let end = text.length;
  while (end > 0 && (text[end - 1] === " " || text[end - 1] === "▁")) end--;
  return text.slice(0, end).replace(/^ +/, "");
}

/** Expression that captures the longest of some texts. */
function anyOf(texts: readonly string[]): RegExp {
  const longestFirst = texts.filter((text) => text !== "").sort((a, b) => b.length - a.length);
  if (longestFirst.length === 0) return /((?!))/;
  return new RegExp(
    `(${longestFirst.map((text) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&")).join("|")})`,
  );
}

/** Pairs of pieces that join to another piece, those with the highest score first, as SentencePiece joins them. */
function mergesOf(pieces: readonly Piece[]): [string, string][] {
  const normal = pieces.filter(({ type }) => type === NORMAL || type === USER_DEFINED);
  const known = new Set(normal.map(({ text }) => text));
  const merges: { readonly pair: [string, string]; readonly score: number }[] = [];
  for (const { text, score } of normal) {
    const characters = [...text];
    for (let at = 1; at < characters.length; at++) {
      const pair: [string, string] = [characters.slice(0, at).join(""), characters.slice(at).join("")];
      if (known.has(pair[0]) && known.has(pair[1])) merges.push({ pair, score });
    }
  }
  return merges.sort((a, b) => b.score - a.score).map(({ pair }) => pair);
}

/** Fields of the messages of `sentencepiece_model.proto`. */
function readModel(file: Uint8Array, path: string): SentencePieceModel {
  const pieces: Piece[] = [];
  let kind = UNIGRAM;
  let byteFallback = false;
  let charsmap: Uint8Array | undefined;
  let addDummyPrefix = true;
  let removeExtraSpaces = true;
  try {
    for (const { field, bytes } of fieldsOf(file)) {
      if (field === 1) pieces.push(readPiece(bytes));
      if (field === 2) {
        for (const one of fieldsOf(bytes)) {
          if (one.field === 3) kind = one.value;
          if (one.field === 35) byteFallback = one.value !== 0;
        }
      }
      if (field === 3) {
        for (const one of fieldsOf(bytes)) {
          if (one.field === 2 && one.bytes.length > 0) charsmap = one.bytes;
          if (one.field === 3) addDummyPrefix = one.value !== 0;
          if (one.field === 4) removeExtraSpaces = one.value !== 0;
        }
      }
    }
  } catch (cause) {
    throw notReadable(path, "a model of SentencePiece", (cause as Error).message, cause);
  }
  if (pieces.length === 0) throw notReadable(path, "a model of SentencePiece", "no pieces");
  return { pieces, kind, byteFallback, charsmap, addDummyPrefix, removeExtraSpaces };
}

function readPiece(bytes: Uint8Array): Piece {
  let text = "";
  let score = 0;
  let type = NORMAL;
  for (const one of fieldsOf(bytes)) {
    if (one.field === 1) text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(one.bytes);
    if (one.field === 2) score = new DataView(one.bytes.buffer, one.bytes.byteOffset).getFloat32(0, true);
    if (one.field === 3) type = one.value;
  }
  return { text, score, type };
}

interface Field {
  readonly field: number;
  /** Value of a varint; 0 for other types. */
  readonly value: number;
  /** Bytes of other types; empty for a varint. */
  readonly bytes: Uint8Array;
}

/** Fields of a message of Protocol Buffers. @throws RangeError for bytes that are not a message */
function* fieldsOf(message: Uint8Array): Generator<Field> {
  const none = new Uint8Array();
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let shift = 1; ; shift *= 128) {
      const byte = message[at++];
      if (byte === undefined) throw new RangeError("bytes that end within a number");
      value += (byte & 127) * shift;
      if (byte < 128) return value;
    }
  };
  const take = (length: number): Uint8Array => {
    if (at + length > message.length) throw new RangeError("bytes that end within a field");
    at += length;
    return message.subarray(at - length, at);
  };
  while (at < message.length) {
    const tag = varint();
    const field = Math.floor(tag / 8);
    const wire = tag % 8;
    if (wire === 0) yield { field, value: varint(), bytes: none };
    else if (wire === 1) yield { field, value: 0, bytes: take(8) };
    else if (wire === 2) yield { field, value: 0, bytes: take(varint()) };
    else if (wire === 5) yield { field, value: 0, bytes: take(4) };
    else throw new RangeError(`bytes of another kind (wire type ${wire})`);
  }
}

function notReadable(path: string, expected: string, got: string, cause?: unknown) {
  return errorFor("INVALID_MODEL", `cannot read ${path}: expected ${expected}, got ${got}`, { cause });
}
