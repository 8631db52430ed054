import { readFileSync } from "node:fs";
import { Tokenizer } from "@huggingface/tokenizers";
import { describe, expect, it } from "vitest";
import { thrownBy } from "../../../../test/support/outcome.js";
import { LinearPattern } from "../../src/linear-pattern.js";
import { tokenizerOfSentencePiece } from "../../src/sentencepiece-model.js";
import { TextTokenizer } from "../../src/text-tokenizer.js";
import { encoderOf, type TokenModel } from "../../src/token-models.js";
import { allParts } from "../../src/turns.js";

const fixture = (path: string) => new URL(`../fixtures/${path}`, import.meta.url);
const read = (kind: string) =>
  JSON.parse(readFileSync(new URL(`fixtures/${kind}/tokenizer.json`, import.meta.url), "utf8")) as object;

const small = {
  added_tokens: [] as object[],
  normalizer: null as object | null,
  pre_tokenizer: null as object | null,
  post_processor: null,
  decoder: { type: "Fuse" },
  model: { type: "BPE", vocab: { a: 0, b: 1, "?": 2 }, merges: [] as string[], unk_token: "?" } as object,
};
const open = (parts: Partial<typeof small>) =>
  new TextTokenizer({ tokenizer: { ...small, ...parts }, config: {} });
const splitBy = (Regex: string) => ({ type: "Split", pattern: { Regex }, behavior: "Isolated" });
const replace = (pattern: object, content: string) => ({ type: "Replace", pattern, content });
const sequence = (...normalizers: object[]) => ({ type: "Sequence", normalizers });

/** Long enough that quadratic time would take minutes. */
const LONG = 300_000;

describe("a tokenizer.json", () => {
  it.each([
    [
      "a step that makes text of one letter",
      { normalizer: replace({ String: "a" }, "b".repeat(10_000)) },
      "a text of 10000 characters",
    ],
    [
      "steps that double a text",
      { normalizer: sequence(...Array.from({ length: 30 }, () => replace({ String: "a" }, "aa"))) },
      "times as long",
    ],
    [
      "a text before each part",
      { normalizer: { type: "Prepend", prepend: "a".repeat(1000) } },
      "a text of 1000 characters",
    ],
    [
      "too many steps",
      { normalizer: sequence(...Array.from({ length: 1000 }, () => ({ type: "NFC" }))) },
      "more than 256 steps",
    ],
    ["parts of no length", { pre_tokenizer: { type: "FixedLength", length: 0 } }, "parts of 0 characters"],
    ["a long pattern", { pre_tokenizer: splitBy("a".repeat(20_000)) }, "a pattern of 20000 characters"],
    ["a pattern that repeats much", { pre_tokenizer: splitBy("(a{1,100}){1,100}") }, "too long"],
    ["a pattern that repeats nothing", { pre_tokenizer: splitBy("(?:){1000000000}") }, "too long"],
    ["a pattern that looks back", { pre_tokenizer: splitBy("(a)\\1") }, "a pattern without"],
    [
      "a long added token",
      { added_tokens: [{ id: 5, content: "a".repeat(1000) }] },
      "an added token of 1000 characters",
    ],
    [
      "an added token that its normalizer reads for ever",
      {
        normalizer: replace({ Regex: "(a+)+c" }, "b"),
        added_tokens: [{ id: 5, content: "a".repeat(40), normalized: true }],
      },
      "too many steps",
    ],
    [
      "words of any length",
      {
        model: {
          type: "WordPiece",
          vocab: { a: 0, "[UNK]": 1 },
          unk_token: "[UNK]",
          max_input_chars_per_word: 1e9,
        },
      },
      "words of 1000000000 characters",
    ],
  ] as [string, Partial<typeof small>, string][])(
    "with %s is refused when it is opened",
    (_what, parts, why) => {
      const said = thrownBy(() => open(parts));
      expect(said).toContain("cannot read tokenizer.json: expected a tokenizer of Hugging Face, got ");
      expect(said).toContain(why);
    },
  );

  // A look ahead at each character takes all steps that the length of the text allows.
  it.each([
    ["a+$", LONG],
    ["(a+)+$", 30_000],
    ["(a|a)*c", 30_000],
    ["(?:a*)*c", 30_000],
    ["(a|b|ab)*c", 30_000],
    ["(?=(a+)+c)a", 4_000],
  ] as const)("with the pattern %s splits a long text, or refuses it", (pattern, length) => {
    const tokenizer = open({ pre_tokenizer: splitBy(pattern) });
    const outcome = (() => {
      try {
        return tokenizer.split(`${"a".repeat(length)}b`).ids.length;
      } catch (error) {
        return (error as Error).message;
      }
    })();
    if (typeof outcome === "number") expect(outcome).toBe(length + 1);
    else expect(outcome).toContain("cannot split a text with a pattern of tokenizer.json");
  });

  it.each([
    [
      "unknown characters of Unigram",
      {
        type: "Unigram",
        unk_id: 0,
        vocab: [
          ["?", 0],
          ["a", -1],
        ],
      },
      "\u4e2d",
      1,
    ],
    [
      "one word of Unigram",
      {
        type: "Unigram",
        unk_id: 0,
        vocab: [
          ["?", 0],
          ["a", -1],
          ["aa", -1.5],
        ],
      },
      "a",
      LONG / 2,
    ],
    [
      "one word of BPE",
      { type: "BPE", vocab: { a: 0, aa: 1, aaaa: 2 }, merges: ["a a", "aa aa"] },
      "a",
      LONG / 4,
    ],
    [
      "unknown characters of BPE",
      { type: "BPE", vocab: { "?": 0 }, merges: [], unk_token: "?", fuse_unk: true },
      "\u4e2d",
      1,
    ],
  ] as [string, object, string, number][])(
    "splits %s without quadratic time",
    (_what, model, letter, count) => {
      expect(open({ model }).split(letter.repeat(LONG)).ids).toHaveLength(count);
    },
  );

  it.each(["gpt", "roberta"])("splits long words of %s as the library does", (kind) => {
    const model = new Tokenizer(read(kind), {}).model as TokenModel;
    let seed = 1;
    const letters = "aeiothnsrdĠ😀é";
    const next = () => {
      seed = (seed * 48_271) % 2_147_483_647;
      return Array.from(letters)[seed % 13]!;
    };
    const own = encoderOf(model);
    for (let count = 0; count < 5; count++) {
      const word = Array.from({ length: 1025 + 400 * count }, next).join("");
      expect(allParts(own([word]))).toEqual(model.encode([word]));
    }
  });

  it("splits words of BERT that nearly have pieces in linear time", () => {
    const tokenizer = new TextTokenizer({ tokenizer: read("bert"), config: {} });
    expect(tokenizer.split(`${"a".repeat(100)} `.repeat(300)).ids.length).toBeGreaterThan(0);
  });
});

it("a pattern of linear time finds what RegExp finds", () => {
  const patterns = [
    "'s|'t| ?\\p{L}+| ?\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    "(?<=\\n)a|(?<![a-z])\\d+",
    "a*?|b",
    "a+?b|(?:b|c){2,3}",
    "(?:a*)*b|c",
    "\\s+$",
    "",
  ];
  const letters = [..."abc1 \n\t.\u4e2d", "\u{1f600}", "'s", "  "];
  let seed = 1;
  const next = () => {
    seed = (seed * 48_271) % 2_147_483_647;
    return letters[seed % letters.length]!;
  };
  for (const source of patterns) {
    const own = new LinearPattern(source) as unknown as RegExp;
    const native = new RegExp(source, "gu");
    for (let i = 0; i < 100; i++) {
      const text = Array.from({ length: i % 20 }, next).join("");
      expect([...text.matchAll(own)].map(({ 0: found, index }) => [found, index])).toEqual(
        [...text.matchAll(native)].map(({ 0: found, index }) => [found, index]),
      );
      if (!source.includes("(")) expect(text.split(own)).toEqual(text.split(native));
      expect(text.replaceAll(own, "X")).toBe(text.replaceAll(native, "X"));
    }
  }
});

describe("the smallest number of tokens of a text", () => {
  const tokenizers = [
    ...["bert", "gpt", "roberta", "t5"].map(
      (kind) => new TextTokenizer({ tokenizer: read(kind), config: {} }),
    ),
    ...["sentencepiece-bpe.model", "sentencepiece-unigram.model", "sentencepiece-symbols.model"].map(
      (name) => {
        const file = fixture(name);
        return new TextTokenizer({
          ...tokenizerOfSentencePiece(readFileSync(file), file.pathname),
          config: {},
        });
      },
    ),
  ];

  it.each(["\n", " ", "a", "the ", "\u4e2d", "\u212a", "e\u0301", "\u{1f600}", "x\u00ad", "<s> \n"])(
    "is not above their true number: %j",
    (part) => {
      for (const tokenizer of tokenizers) {
        const text = part.repeat(500);
        expect(tokenizer.fewestTokens(allParts(tokenizer.normalizeInParts(text)))).toBeLessThanOrEqual(
          tokenizer.split(text).ids.length,
        );
      }
    },
  );

  it("is told from the bytes, unless the tokenizer leaves parts of a text out", () => {
    const [bert, gpt] = tokenizers;
    expect(gpt!.fewestTokens("\n".repeat(1_000_000))).toBeGreaterThan(1000);
    expect(bert!.fewestTokens("\n".repeat(1_000_000))).toBe(0);
  });
});
