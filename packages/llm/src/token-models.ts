import * as library from "@huggingface/tokenizers";
import { pieceOfByte } from "./token-spelling.js";
import type { Parts } from "./turns.js";

/** A model of the library `@huggingface/tokenizers`, whose own types Node's resolution does not find. */
export interface TokenModel {
  readonly config: { readonly continuing_subword_prefix?: string };
  readonly vocab: readonly (string | undefined)[];
  readonly tokens_to_ids: ReadonlyMap<string, number>;
  readonly unk_token_id?: number;
  readonly unk_token?: string;
  readonly fuse_unk: boolean;
  encode(words: readonly string[]): string[];
}

const { Model } = library as unknown as { readonly Model: new (config: object) => TokenModel };

/** Stands for the words of a section. No text has it, because a surrogate is not a character. */
export const SECTION = "\ud800section";

/** Takes the place of a model in the library's tokenizer, and keeps the words of the sections between added tokens. */
export class WordKeeper extends Model {
  #sections: (readonly string[])[] = [];

  constructor({ vocab, tokens_to_ids, unk_token }: TokenModel) {
    super({});
    // The tokenizer looks up tokens in its model.
    Object.assign(this, { vocab, tokens_to_ids, unk_token });
  }

  override encode(words: readonly string[]): string[] {
    this.#sections.push(words);
    return [SECTION];
  }

  /** The words of the sections since the last call. */
  take(): readonly (readonly string[])[] {
    return this.#sections.splice(0);
  }
}

interface Unigram extends TokenModel {
  readonly scores: readonly number[];
  readonly unk_score: number;
  readonly trie: { common_prefix_search(chars: readonly string[], start: number): Iterable<string> };
}

interface Bpe extends TokenModel {
  readonly merges: readonly (readonly [string, string])[];
  readonly byte_fallback: boolean;
  readonly end_of_word_suffix?: string;
  readonly continuing_subword_suffix: string | null;
  readonly ignore_merges: boolean;
}

interface WordPiece extends TokenModel {
  readonly max_input_chars_per_word: number;
}

/** Characters that are encoded between two pauses: about a millisecond. */
const CHARACTERS_OF_PART = 1024;

/**
 * Makes the tokens of words as a model of the library does, in parts and in a time that grows with the length of a word
 * and not with its square.
 */
export function encoderOf(model: TokenModel): (words: readonly string[]) => Parts<string[]> {
  const longest = model.vocab.reduce((most, token) => Math.max(most, token?.length ?? 0), 1);
  const encode =
    "max_input_chars_per_word" in model
      ? (word: string) => wordPiece(model as WordPiece, word, longest)
      : (word: string) => model.encode([word]);
  const join = "merges" in model ? pairJoiner(model as Bpe) : undefined;
  const inParts = "trie" in model ? (word: string) => unigram(model as Unigram, word) : join;
  return function* (words) {
    const tokens: string[] = [];
    let left = CHARACTERS_OF_PART;
    for (const word of words) {
      const isLong = word.length > CHARACTERS_OF_PART || "trie" in model;
      const found = isLong && inParts !== undefined ? yield* inParts(word) : encode(word);
      for (const token of found) tokens.push(token);
      left -= word.length;
      if (left > 0) continue;
      left = CHARACTERS_OF_PART;
      yield;
    }
    return tokens;
  };
}

/** Puts unknown tokens beside each other together, if the model does. */
export function withFusedUnknown(model: TokenModel, tokens: readonly string[]): readonly string[] {
  if (!model.fuse_unk) return tokens;
  const { tokens_to_ids: ids, unk_token_id: unknown } = model;
  const isUnknown = (token: string) => (ids.get(token) ?? unknown) === unknown;
  const fused: string[] = [];
  let run: string[] = [];
  const end = () => {
    if (run.length > 0) fused.push(run.join(""));
    run = [];
  };
  for (const token of tokens) {
    if (isUnknown(token)) {
      // The token that stands for unknown ones is not spelled twice.
      if (run.length === 0 || ids.get(run[0]!) !== unknown) run.push(token);
      continue;
    }
    end();
    fused.push(token);
  }
  end();
  return fused;
}

/** The split of a word with the highest sum of scores. Of two, the one whose last token is longer. */
function* unigram({ trie, tokens_to_ids, scores, unk_score }: Unigram, word: string): Parts<string[]> {
  const chars = Array.from(word);
  const best = new Float64Array(chars.length + 1).fill(Number.NEGATIVE_INFINITY);
  const begin = new Int32Array(chars.length + 1).fill(-1);
  best[0] = 0;
  const take = (from: number, length: number, score: number) => {
    const sum = best[from]! + score;
    if (begin[from + length]! >= 0 && !(sum > best[from + length]!)) return;
    best[from + length] = sum;
    begin[from + length] = from;
  };
  for (let from = 0; from < chars.length; from++) {
    if (from % CHARACTERS_OF_PART === CHARACTERS_OF_PART - 1) yield;
    let hasOne = false;
    for (const token of trie.common_prefix_search(chars, from)) {
      const length = Array.from(token).length;
      take(from, length, scores[tokens_to_ids.get(token)!]!);
      hasOne ||= length === 1;
    }
    if (!hasOne) take(from, 1, unk_score);
  }
  const tokens: string[] = [];
  for (let end = chars.length; end > 0; end = begin[end]!) {
    tokens.push(chars.slice(begin[end]!, end).join(""));
  }
  return tokens.reverse();
}

/**
 * Makes the function that splits a long word as BPE does: it joins pairs by their rank, and the first of those with one
 * rank. The library keeps the tokens of short words.
 */
function pairJoiner(model: Bpe): (word: string) => Parts<string[]> {
  const { merges, tokens_to_ids: ids, unk_token: unknown, continuing_subword_suffix: suffix } = model;
  let ranks: ReadonlyMap<string, number> | undefined;
  const keyOf = (first: string, second: string) => `${first.length} ${first}${second}`;
  const known = (token: string): readonly string[] => {
    if (ids.has(token)) return [token];
    const bytes = model.byte_fallback ? Array.from(Buffer.from(token), pieceOfByte) : [];
    if (bytes.length > 0 && bytes.every((byte) => ids.has(byte))) return bytes;
    return unknown === undefined || unknown === null ? [] : [unknown];
  };
  return function* (word) {
    if (model.ignore_merges && ids.has(word)) return [word];
    ranks ??= new Map(merges.map(([first, second], rank) => [keyOf(first, second), rank]));
    const parts = Array.from(word);
    const { length } = parts;
    parts[length - 1] += model.end_of_word_suffix ?? "";
    // Places of the parts beside each part. A part that was joined to the one before it is empty.
    const next = Int32Array.from(parts, (_, at) => at + 1);
    const before = Int32Array.from(parts, (_, at) => at - 1);
    const rankAt = (at: number) =>
      at >= 0 && next[at]! < length ? ranks!.get(keyOf(parts[at]!, parts[next[at]!]!)) : undefined;
    const pairs = new SmallestFirst();
    const add = (at: number) => {
      const rank = rankAt(at);
      if (rank !== undefined) pairs.push(rank * length + at);
    };
    let steps = 0;
    for (let at = 0; at < length; at++) {
      if (++steps % CHARACTERS_OF_PART === 0) yield;
      add(at);
    }
    for (let pair = pairs.pop(); pair !== undefined; pair = pairs.pop()) {
      if (++steps % CHARACTERS_OF_PART === 0) yield;
      const at = pair % length;
      if (parts[at] === "" || rankAt(at) !== (pair - at) / length) continue;
      const joined = next[at]!;
      parts[at] += parts[joined]!;
      parts[joined] = "";
      next[at] = next[joined]!;
      if (next[at]! < length) before[next[at]!] = at;
      add(before[at]!);
      add(at);
    }
    const tokens: string[] = [];
    for (let at = 0; at < length; at = next[at]!) {
      if (++steps % CHARACTERS_OF_PART === 0) yield;
      for (const token of known(parts[at]! + (next[at]! < length ? (suffix ?? "") : ""))) tokens.push(token);
    }
    return tokens;
  };
}

/** A binary heap of numbers. */
class SmallestFirst {
  readonly #heap: number[] = [];

  push(value: number): void {
    const heap = this.#heap;
    let at = heap.length;
    for (; at > 0; ) {
      const above = (at - 1) >> 1;
      if (heap[above]! <= value) break;
      heap[at] = heap[above]!;
      at = above;
    }
    heap[at] = value;
  }

  pop(): number | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return last;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below + 1 < heap.length && heap[below + 1]! < heap[below]!) below++;
      if (below >= heap.length || heap[below]! >= last) break;
      heap[at] = heap[below]!;
      at = below;
    }
    heap[at] = last;
    return first;
  }
}

function wordPiece(model: WordPiece, word: string, longest: number): string[] {
  const { tokens_to_ids: ids, unk_token: unknown = "", max_input_chars_per_word: most } = model;
  const { continuing_subword_prefix: prefix } = model.config;
  const chars = Array.from(word);
  if (chars.length > most) return [unknown];
  const tokens: string[] = [];
  for (let start = 0; start < chars.length; ) {
    const begin = start > 0 ? `${prefix}` : "";
    let end = Math.min(chars.length, start + longest);
    while (end > start && !ids.has(begin + chars.slice(start, end).join(""))) end--;
    if (end === start) return [unknown];
    tokens.push(begin + chars.slice(start, end).join(""));
    start = end;
  }
  return tokens;
}
