/**
 * How the spelling of a vocabulary's tokens stands for bytes: "byte_level" as in GPT-2 and Llama 3, "byte_fallback" as
 * in SentencePiece ("▁" for a space, and perhaps `<0x0A>` for a byte), "raw" for plain text.
 */
export type TokenSpelling = "byte_level" | "byte_fallback" | "raw";

/**
 * Finds out how tokens are spelled from the decoder of `tokenizer.json`, which undoes the spelling. It may be a sequence
 * of decoders.
 */
export function tokenSpelling(decoder: unknown): TokenSpelling {
  const text = JSON.stringify(decoder ?? null);
  if (text.includes('"ByteLevel"')) return "byte_level";
  return /"ByteFallback"|"Metaspace"|▁/.test(text) ? "byte_fallback" : "raw";
}
