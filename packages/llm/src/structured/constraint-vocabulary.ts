import { TritonError } from "@tritonjs/protocol";
import { spellingOfBytes, type TokenizerJson, type TokenSpelling, tokenSpelling } from "../token-spelling.js";

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
