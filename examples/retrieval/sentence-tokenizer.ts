import { Tokenizer } from "@huggingface/tokenizers";

/** Pieces of a SentencePiece vocabulary with the logarithm of their probability. */
export type Vocabulary = readonly (readonly [piece: string, score: number])[];

/** The first pieces are not text: unknown, begin, end and three spare ones. */
const RESERVED = 6;

/** Below the score of any text, so that a text which spells a reserved piece is not read as it. */
const NEVER = -1e4;

/**
 * Makes the function that cuts a text into the pieces of a vocabulary whose scores have the highest sum. It returns
 * their numbers, 0 for characters that the vocabulary lacks.
 */
export function sentenceTokenizer(vocabulary: Vocabulary): (text: string) => number[] {
  const vocab = vocabulary.map(([piece, score], i) => [piece, i > 0 && i < RESERVED ? NEVER : score]);
  // What a `tokenizer.json` would say.
  const tokenizer = new Tokenizer(
    {
      normalizer: { type: "NFKC" },
      pre_tokenizer: { type: "Metaspace", replacement: "▁", prepend_scheme: "always" },
      model: { type: "Unigram", unk_id: 0, vocab },
      decoder: { type: "Metaspace", replacement: "▁", prepend_scheme: "always" },
      post_processor: null,
      added_tokens: [],
    },
    {},
  );
  return (text) => tokenizer.encode(text.trim().replace(/\s+/g, " ")).ids;
}
