import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { TextTokenizer } from "../../src/text-tokenizer.js";
import { TokenEncoder } from "../../src/tokenizer/token-encoder.js";
import { planTokenizer, type TokenizerOptions } from "../../src/tokenizer/tokenizer-options.js";
import { allParts } from "../../src/turns.js";

const fixtures = fileURLToPath(new URL("fixtures", import.meta.url));
const read = (path: string) => JSON.parse(readFileSync(`${fixtures}/${path}`, "utf8"));

/** Ids, mask and types of one text; null for a text that the library refuses to cut. */
type Values = readonly [ids: number[], mask: number[], types: number[]] | null;

interface Expected {
  readonly texts: readonly string[];
  readonly pairs: readonly (readonly [string, string])[];
  readonly settings: readonly Readonly<Record<string, string | number>>[];
  readonly kinds: Readonly<
    Record<string, { readonly texts: Values[][]; readonly pairs: Values[][]; readonly decoded: string[] }>
  >;
}

const expected: Expected = read("expected.json");

function encoderOf(kind: string, options: Omit<TokenizerOptions, "directory">): TokenEncoder {
  const tokenizer = read(`${kind}/tokenizer.json`);
  const plan = planTokenizer({ directory: "", ...options });
  return new TokenEncoder(new TextTokenizer({ tokenizer, config: {} }), plan, { tokenizer, config: {} });
}

function valuesOf(encoder: TokenEncoder, texts: readonly string[]): Values {
  try {
    const { input_ids, attention_mask, token_type_ids } = encoder.pad([
      allParts(encoder.encode(texts, undefined)),
    ]);
    return [[...input_ids], [...attention_mask], [...token_type_ids]];
  } catch (error) {
    expect(String(error)).toMatch(/expected at most \d+ tokens, got \d+; '\w+' cuts only '\w+'|cuts only/);
    return null;
  }
}

const camelCase = (name: string) => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

describe.each(Object.keys(expected.kinds))(
  "tokens of a tokenizer like %s equal those of Hugging Face's library",
  (kind) => {
    const values = expected.kinds[kind]!;

    it.each(expected.settings.map((settings, i) => [JSON.stringify(settings), i] as const))(
      "with %s",
      (_, i) => {
        const settings = Object.fromEntries(
          Object.entries(expected.settings[i]!).map(([name, value]) => [camelCase(name), value]),
        );
        const single = encoderOf(kind, settings);
        for (const [n, text] of expected.texts.entries()) {
          expect({ text, values: valuesOf(single, [text]) }).toEqual({ text, values: values.texts[i]![n] });
        }
        const pair = encoderOf(kind, { ...settings, pair: true });
        for (const [n, texts] of expected.pairs.entries()) {
          expect({ texts, values: valuesOf(pair, texts) }).toEqual({ texts, values: values.pairs[i]![n] });
        }
      },
    );

    it("and back", () => {
      const tokenizer = new TextTokenizer({ tokenizer: read(`${kind}/tokenizer.json`), config: {} });
      for (const [n, text] of expected.texts.entries()) {
        expect(tokenizer.decode(tokenizer.encode(text, true))).toBe(values.decoded[n]);
      }
    });
  },
);
