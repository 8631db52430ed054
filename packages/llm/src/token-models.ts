/** A model of the library `@huggingface/tokenizers`, whose own types Node's resolution does not find. */
export interface TokenModel {
  readonly config: { readonly continuing_subword_prefix?: string };
  readonly vocab: readonly (string | undefined)[];
  readonly tokens_to_ids: ReadonlyMap<string, number>;
  readonly unk_token_id?: number;
  readonly unk_token?: string;
  readonly fuse_unk: boolean;
  encode(words: readonly string[]): string[];
  _call(words: readonly string[]): string[];
}

interface Unigram extends TokenModel {
  readonly scores: readonly number[];
  readonly unk_score: number;
  readonly trie: { readonly root: TrieNode };
}

interface TrieNode {
  readonly is_leaf: boolean;
  readonly children: ReadonlyMap<string, TrieNode>;
}

interface WordPiece extends TokenModel {
  readonly max_input_chars_per_word: number;
}

/**
 * Makes the tokens of words as a model of the library does, in a time that grows with the length of a word and not with
 * its square.
 */
export function encoderOf(model: TokenModel): (words: readonly string[]) => string[] {
  const longest = model.vocab.reduce((most, token) => Math.max(most, token?.length ?? 0), 1);
  const encode =
    "trie" in model
      ? (word: string) => unigram(model as Unigram, word)
      : "max_input_chars_per_word" in model
        ? (word: string) => wordPiece(model as WordPiece, word, longest)
        : (word: string) => model.encode([word]);
  return (words) => {
    const tokens: string[] = [];
    for (const word of words) for (const token of encode(word)) tokens.push(token);
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
function unigram({ trie, tokens_to_ids: ids, scores, unk_score: unknown }: Unigram, word: string): string[] {
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
    let hasOne = false;
    let node = trie.root;
    let token = "";
    for (let at = from; at < chars.length; at++) {
      const next = node.children.get(chars[at]!);
      if (next === undefined) break;
      node = next;
      token += chars[at]!;
      if (!node.is_leaf) continue;
      take(from, at + 1 - from, scores[ids.get(token)!]!);
      hasOne ||= at === from;
    }
    if (!hasOne) take(from, 1, unknown);
  }
  const tokens: string[] = [];
  for (let end = chars.length; end > 0; end = begin[end]!) {
    tokens.push(chars.slice(begin[end]!, end).join(""));
  }
  return tokens.reverse();
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
