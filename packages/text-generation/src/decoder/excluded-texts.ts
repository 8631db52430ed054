import type { TextTokenizer } from "../tokenizer/text-tokenizer.js";

/** Tokens of the texts that must not be generated, each at the beginning of a word and after a space. */
export function excludedSequences(
  texts: readonly string[],
  tokenizer: Pick<TextTokenizer, "encode">,
): readonly (readonly number[])[] {
  return texts.flatMap((text) => {
    const bare = text.trimStart();
    return [bare, ` ${bare}`]
      .map((one) => tokenizer.encode(one, false))
      .filter((tokens) => tokens.length > 0);
  });
}
