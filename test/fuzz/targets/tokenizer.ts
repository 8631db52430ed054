import { TextTokenizer } from "../../../packages/llm/src/text-tokenizer.js";
import { expectThat, type FuzzTarget, refusalOf } from "../engine/target.js";
import { text } from "../structures/text.js";

const vocabulary = Object.fromEntries(
  [..."abcdefgh\u0120", "ab", "abc", "</s>"].map((token, id) => [token, id]),
);
const added = [
  {
    id: 11,
    content: "</s>",
    special: true,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
  },
];

const SEEDS = [
  {
    version: "1.0",
    added_tokens: added,
    normalizer: {
      type: "Sequence",
      normalizers: [
        { type: "NFC" },
        { type: "Lowercase" },
        { type: "Replace", pattern: { String: " " }, content: "_" },
      ],
    },
    pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true },
    post_processor: {
      type: "TemplateProcessing",
      single: [{ SpecialToken: { id: "</s>", type_id: 0 } }, { Sequence: { id: "A", type_id: 0 } }],
      pair: [],
      special_tokens: { "</s>": { id: "</s>", ids: [11], tokens: ["</s>"] } },
    },
    decoder: { type: "ByteLevel" },
    model: {
      type: "BPE",
      vocab: vocabulary,
      merges: [["a", "b"], "ab c"],
      unk_token: null,
      byte_fallback: false,
      ignore_merges: false,
    },
  },
  {
    added_tokens: [],
    normalizer: {
      type: "BertNormalizer",
      clean_text: true,
      handle_chinese_chars: true,
      strip_accents: null,
      lowercase: true,
    },
    pre_tokenizer: { type: "BertPreTokenizer" },
    decoder: { type: "WordPiece", prefix: "##", cleanup: true },
    model: {
      type: "WordPiece",
      vocab: { "[UNK]": 0, ...vocabulary },
      unk_token: "[UNK]",
      continuing_subword_prefix: "##",
      max_input_chars_per_word: 100,
    },
  },
  {
    added_tokens: added,
    pre_tokenizer: { type: "Metaspace", replacement: "\u2581", add_prefix_space: true },
    decoder: {
      type: "Sequence",
      decoders: [
        { type: "Replace", pattern: { String: "\u2581" }, content: " " },
        { type: "ByteFallback" },
        { type: "Fuse" },
      ],
    },
    model: {
      type: "Unigram",
      unk_id: 0,
      vocab: [
        ["<unk>", 0],
        ["a", -1.5],
        ["b", -2],
        ["\u2581ab", -1],
      ],
    },
  },
];

/** `tokenizer.json`. A tokenizer that opens turns a short text into tokens and back. */
export function open(): FuzzTarget {
  return {
    seeds: SEEDS.map((seed) => Buffer.from(JSON.stringify(seed))),
    structure: text,
    tokens: [
      ...[
        "type",
        "BPE",
        "WordPiece",
        "Unigram",
        "ByteLevel",
        "Metaspace",
        "Split",
        "Regex",
        "String",
        "Sequence",
        "null",
      ],
      ...[
        "__proto__",
        "constructor",
        "toString",
        "vocab",
        "merges",
        "added_tokens",
        "content",
        "id",
        "decoder",
        "model",
      ],
      ...[
        "[]",
        "{}",
        "true",
        "-1",
        "1e9",
        "(a+)+$",
        "[",
        "\\\\p{L}+",
        "WordLevel",
        "Punctuation",
        "Digits",
        "Whitespace",
      ],
    ],
    run(input) {
      let tokenizer: object;
      try {
        tokenizer = JSON.parse(Buffer.from(input).toString("utf8")) as object;
      } catch {
        return "not JSON";
      }
      if (typeof tokenizer !== "object" || tokenizer === null || Array.isArray(tokenizer))
        return "not an object";
      try {
        const opened = new TextTokenizer({ tokenizer, config: {} });
        const ids = opened.encode("abc </s> \u00e9d", true);
        expectThat(
          ids.every((id) => Number.isInteger(id) || id === undefined),
          () => `tokens ${ids}`,
        );
        opened.decode([0, 1, 2]);
        for (let id = 0; id < Math.min(20, opened.tokens.length); id++) opened.textOf(id);
        return "opened";
      } catch (error) {
        return refusalOf(error);
      }
    },
  };
}
