import { TritonError } from "@tritonjs/protocol";
import { spellingOfBytes } from "../tokenizer/byte-letters.js";
import { type TokenSpelling, tokenSpelling } from "../tokenizer/token-spelling.js";
import type { ConstraintVocabulary } from "./token-constraint.js";

interface AddedToken {
  readonly id: number;
  readonly content: string;
  readonly special: boolean;
}

/**
 * Reads the vocabulary for constraints from the content of `tokenizer.json`. Special tokens get an empty spelling,
 * which no format allows. `size` is the width of the model's logits.
 *
 * @throws TritonError INVALID_ARG for a tokenizer whose tokens do not join to a text as they are, such as WordPiece
 */
export function readConstraintVocabulary(tokenizer: unknown, size?: number): ConstraintVocabulary {
  const {
    model,
    decoder,
    added_tokens: added = [],
  } = tokenizer as {
    model?: { type?: string; vocab?: unknown };
    decoder?: unknown;
    added_tokens?: readonly AddedToken[];
  };
  if (model?.type !== undefined && model.type !== "BPE" && model.type !== "Unigram") {
    throw new TritonError(
      "INVALID_ARG",
      `cannot limit answers to a format: expected a tokenizer of the type BPE or Unigram, got ${model.type}`,
    );
  }
  const spelling = tokenSpelling(decoder);
  const tokens: string[] = [];
  for (const [token, id] of entries(model?.vocab)) tokens[id] = token;
  const spell = SPELL[spelling];
  for (const { id, content, special } of added) tokens[id] = special ? "" : spell(content);
  // Ids without a token.
  for (let id = 0; id < tokens.length; id++) tokens[id] ??= "";
  return size === undefined || size <= tokens.length
    ? { tokens, spelling, size: tokens.length }
    : { tokens, spelling, size };
}

function entries(vocabulary: unknown): Iterable<readonly [string, number]> {
  if (Array.isArray(vocabulary)) {
    return vocabulary.map((entry: readonly [string, number], id) => [entry[0], id] as const);
  }
  if (typeof vocabulary === "object" && vocabulary !== null)
    return Object.entries(vocabulary as Record<string, number>);
  throw new TritonError(
    "INVALID_ARG",
    'cannot read tokenizer.json: expected "model.vocab", an object or an array',
  );
}

/** Spellings of tokens that were added, which are plain text in the file. */
const SPELL: Readonly<Record<TokenSpelling, (text: string) => string>> = {
  byte_level: (text) => spellingOfBytes(new TextEncoder().encode(text)),
  byte_fallback: (text) => text.replaceAll(" ", "▁"),
  raw: (text) => text,
};
