import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Tokenizer } from "@huggingface/tokenizers";
import { Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";
import { tokenizer } from "@tritonjs/llm";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { thrownBy } from "../../../../test/support/outcome.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { LinearPattern } from "../../src/linear-pattern.js";
import { tokenizerOfSentencePiece } from "../../src/sentencepiece-model.js";
import { TextTokenizer } from "../../src/text-tokenizer.js";
import { encoderOf, type TokenModel } from "../../src/token-models.js";
import { allParts } from "../../src/turns.js";

const fixtures = fileURLToPath(new URL("fixtures", import.meta.url));

const bert = readFileSync(`${fixtures}/bert/tokenizer.json`, "utf8");

const directory = `${fixtures}/bert`;

const numbers = (data: Iterable<unknown> | undefined) => Array.from(data ?? [], Number);

/** The message of a refusal. */
async function refusal(call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    () => undefined,
    (thrown) => thrown,
  );
  expect(error).toMatchObject({ code: "INVALID_ARG" });
  return (error as Error).message;
}

describe("a tokenizer that is bound", () => {
  const triton = new Triton();
  afterAll(() => triton.close());
  const inline = { instanceGroup: [{ isolation: "inline" }] } as const;

  it("makes tokens of texts, padded to the longest of a request, and texts of tokens", async () => {
    const encode = triton.bind({ modelName: "encode", inferFunc: tokenizer({ directory }) });
    const decode = triton.bind({
      modelName: "decode",
      inferFunc: tokenizer({ directory, direction: "decode" }),
    });
    const { input_ids, attention_mask, token_type_ids } = await encode.inferBatch({
      text: [["the red house"], ["Anna"]],
    });
    expect(input_ids!.shape).toEqual([2, 5]);
    expect(numbers(attention_mask!.data)).toEqual([1, 1, 1, 1, 1, 1, 1, 1, 0, 0]);
    expect(numbers(token_type_ids!.data)).toEqual(Array(10).fill(0));
    const { text } = await decode.inferBatch({ ids: input_ids! });
    expect(Array.from(text!.data as Iterable<Uint8Array>, String)).toHaveLength(2);
    expect([...(text!.data as unknown as Uint8Array[])].map((one) => Buffer.from(one).toString())).toEqual([
      "the red house",
      "anna",
    ]);
  });

  it("makes pairs, and sentences of the second texts, one for each", async () => {
    const pairs = triton.bind({
      modelName: "pairs",
      inferFunc: tokenizer({ directory, pairTemplate: "the {} house" }),
      config: inline,
    });
    const { input_ids, token_type_ids } = await pairs.inferSample({ text: ["Anna"], text_pair: ["red"] });
    expect(input_ids!.shape).toEqual([7]);
    expect(numbers(token_type_ids!.data)).toEqual([0, 0, 0, 1, 1, 1, 1]);
  });

  it("takes several texts without a batch axis", async () => {
    const config = { ...inline, batching: false } as const;
    const encode = triton.bind({ modelName: "encode-1", inferFunc: tokenizer({ directory }), config });
    const back = tokenizer({ directory, direction: "decode" });
    const decode = triton.bind({ modelName: "decode-1", inferFunc: back, config });
    const { input_ids } = await encode.infer({ text: [["the red house"], ["Anna"]] });
    expect(input_ids!.shape).toEqual([2, 5]);
    const { text } = await decode.infer({ ids: input_ids! });
    expect(text!.shape).toEqual([2, 1]);
  });

  it("works on the caller's thread with isolation 'inline'", async () => {
    const inline = triton.bind({
      modelName: "inline",
      inferFunc: tokenizer({ directory }),
      config: { instanceGroup: [{ isolation: "inline" }] },
    });
    expect((await inline.inferSample({ text: ["the red house"] })).input_ids!.shape).toEqual([5]);
  });

  it.each([
    ["gpt", "a word without end"],
    ["t5", "a word of pieces"],
    ["bert", "words"],
  ])("leaves turns of the loop to others while %s encodes %s inline", async (kind, what) => {
    const inline = triton.bind({
      modelName: `inline-${kind}`,
      inferFunc: tokenizer({ directory: new URL(`fixtures/${kind}`, import.meta.url) }),
      config: { instanceGroup: [{ isolation: "inline" }] },
    });
    const text = what === "words" ? "the red house ".repeat(6_000) : "house".repeat(6_000);
    let turns = 0;
    let settled = false;
    const answer = inline.inferSample({ text: [text] }).then(() => {
      settled = true;
    });
    for (; !settled; turns++) await new Promise((resolve) => setImmediate(resolve));
    await answer;
    expect(turns).toBeGreaterThan(5);
  });

  it.each([
    ["an unknown option", { maxlength: 5 }, "tokenizer() has an unknown option 'maxlength'"],
    [
      "another word",
      { truncation: "first" },
      "tokenizer: truncation: expected one of longest_first, only_first,",
    ],
    ["a length of 0", { maxLength: 0 }, "tokenizer: maxLength: expected an integer from 1 to 999999, got 0"],
    [
      "a sentence without {}",
      { pairTemplate: "it is" },
      "expected a text with {} for the second text, got 'it is'",
    ],
    [
      "a pair to decode",
      { direction: "decode", pair: true },
      "pair: expected false with the direction 'decode'",
    ],
    ["no tokenizer.json", { directory: fixtures }, `expected the file ${fixtures}/tokenizer.json`],
  ])("refuses %s", async (_, options, message) => {
    const open = () => tokenizer({ directory, ...options } as Parameters<typeof tokenizer>[0]);
    expect(open).toThrow(message);
  });
});

/** Models that are refused: what is wrong, their configuration, their file and the reason. */
const REFUSED: readonly (readonly [what: string, config: string, file: string, reason: string])[] = [
  ["no file", "", "", "expected the file"],
  ["a file that is not JSON", "", "tokens", "tokenizer.json: expected a JSON object, got Unexpected token"],
  ["a list", "", "[]", "tokenizer.json: expected a JSON object, got a list"],
  ["another document", "", "{}", "expected a tokenizer of Hugging Face, got"],
  [
    "an unknown parameter",
    'parameters { key: "length" value: { string_value: "5" } }',
    bert,
    "expected only the parameters add_special_tokens,",
  ],
  [
    "a wrong parameter",
    'parameters { key: "max_length" value: { string_value: "many" } }',
    bert,
    "expected a number, got 'many'",
  ],
  [
    "no room for text",
    'parameters { key: "max_length" value: { string_value: "2" } }',
    bert,
    "maxLength: expected more than the 2 special tokens of this tokenizer, got 2",
  ],
  [
    "another output",
    'output [ { name: "tokens" data_type: TYPE_INT64 dims: [ -1 ] } ]',
    bert,
    "expected outputs of input_ids, attention_mask, token_type_ids, got 'tokens'",
  ],
];

/** Models that are served, by their configuration. */
const SERVED: Readonly<Record<string, string>> = {
  tokens: "",
  labels: `
    input [ { name: "sequence" data_type: TYPE_STRING dims: [ 1 ] }, { name: "labels" data_type: TYPE_STRING dims: [ -1 ] } ]
    output [ { name: "input_ids" data_type: TYPE_INT32 dims: [ -1, -1 ] }, { name: "attention_mask" data_type: TYPE_INT32 dims: [ -1, -1 ] } ]
    parameters { key: "pair_template" value: { string_value: "it is {}." } }
    parameters { key: "padding" value: { string_value: "max_length" } }
    parameters { key: "max_length" value: { string_value: "16" } }`,
  decodes: `max_batch_size: 8
    input [ { name: "answer" data_type: TYPE_INT32 dims: [ -1 ] } ]
    output [ { name: "said" data_type: TYPE_STRING dims: [ 1 ] } ]`,
  limited: `
    parameters { key: "max_bytes" value: { string_value: "100" } }
    parameters { key: "max_length" value: { string_value: "6" } }
    parameters { key: "truncation" value: { string_value: "none" } }`,
};

describe("a tokenizer of a repository", () => {
  let triton: Triton;
  let models: RepositoryOnDisk;

  beforeAll(async () => {
    const files: Record<string, string> = {};
    const add = (name: string, config: string, file: string) => {
      files[`${name}/config.pbtxt`] = `backend: "tokenizer"\n${config}`;
      files[`${name}/1/${file === "" ? "" : "tokenizer.json"}`] = file;
    };
    for (const [name, config] of Object.entries(SERVED)) add(name, config, bert);
    for (const [i, [, config, file]] of REFUSED.entries()) add(`refused${i}`, config, file);
    models = await RepositoryOnDisk.create(files);
    const logger = { error() {}, warn() {}, info() {}, debug() {} };
    triton = new Triton({
      logger,
      extensions: [repository({ modelRepository: models.path, exitOnError: false })],
    });
    await triton.ready();
  });

  afterAll(async () => {
    await triton.close();
    await models[Symbol.asyncDispose]();
  });

  it("completes its configuration, and answers over HTTP", async () => {
    const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });
    const url = `${addresses.http!.url}/v2/models/tokens`;
    expect(await (await fetch(`${url}/config`)).json()).toMatchObject({
      backend: "tokenizer",
      max_batch_size: 32,
      input: [{ name: "text", data_type: "TYPE_STRING", dims: [1] }],
      output: [
        { name: "input_ids", data_type: "TYPE_INT64", dims: [-1] },
        { name: "attention_mask", data_type: "TYPE_INT64", dims: [-1] },
        { name: "token_type_ids", data_type: "TYPE_INT64", dims: [-1] },
      ],
    });
    const body = { inputs: [{ name: "text", datatype: "BYTES", shape: [1, 1], data: ["the red house"] }] };
    const answer = await fetch(`${url}/infer`, { method: "POST", body: JSON.stringify(body) });
    const { outputs } = (await answer.json()) as {
      outputs: { name: string; shape: number[]; data: number[] }[];
    };
    expect(outputs.map(({ name, shape }) => [name, shape])).toEqual([
      ["input_ids", [1, 5]],
      ["attention_mask", [1, 5]],
      ["token_type_ids", [1, 5]],
    ]);
  });

  it("takes names, data types and dims from its configuration, and options from its parameters", async () => {
    const call = (labels: string[]) => triton.infer("labels", { sequence: ["the red house"], labels });
    const { input_ids, attention_mask } = await call(["red", "tiny", "a child"]);
    expect(input_ids).toMatchObject({ dtype: "int32", shape: [3, 16] });
    expect(attention_mask!.shape).toEqual([3, 16]);
    expect(await refusal(call([]))).toContain("input 'labels': expected at least one text, got none");
    expect(await refusal(call(["red", ""]))).toContain(
      "input 'labels', row 1: expected a text, got an empty one",
    );
  });

  it("decodes if its input has integers", async () => {
    const { said } = await triton.infer("decodes", { answer: [[2, 3]] });
    expect(said!.shape).toEqual([1, 1]);
    expect(await refusal(triton.infer("decodes", { answer: [[5, 9999]] }))).toContain(
      "input 'answer': expected token numbers from 0 to ",
    );
  });

  it("refuses texts that are not UTF-8, empty, too large or too long; others of a batch are answered", async () => {
    const call = (...texts: (string | Uint8Array)[]) =>
      triton.infer("limited", { text: texts.map((text) => [text]) });
    const [bytes, empty, large, long, good] = await Promise.all([
      refusal(call("red", Uint8Array.of(0x61, 0xff))),
      refusal(call("")),
      refusal(call("x".repeat(101))),
      refusal(call("the old man painted the red house")),
      call("the red house"),
    ]);
    expect(bytes).toContain("input 'text', row 1: expected UTF-8, got 2 bytes that are not");
    expect(empty).toContain("input 'text': expected a text, got an empty one; set allow_empty to encode it");
    expect(large).toContain("input 'text': expected a text of at most 100 bytes, got 101");
    expect(long).toMatch(/input 'text': expected at most 4 tokens, got \d+; truncation is 'none'/);
    expect(good.input_ids!.shape).toEqual([1, 5]);
  });

  it.each(REFUSED.map(([what, , , reason], i) => [what, i, reason] as const))(
    "with %s is not loaded, and other models are",
    async (_what, i, reason) => {
      const rows = await serviceOf(triton).repositoryIndex(false);
      expect(rows.find(({ name }) => name === `refused${i}`)?.reason).toContain(reason);
    },
  );
});

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
const LONG = 100_000;

describe("hostile tokenizers", () => {
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
});

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
        const text = part.repeat(100);
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
