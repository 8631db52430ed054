import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";
import { tokenizer } from "@tritonjs/llm/tokenizer";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

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
    });
    const { input_ids, token_type_ids } = await pairs.inferSample({ text: ["Anna"], text_pair: ["red"] });
    expect(input_ids!.shape).toEqual([7]);
    expect(numbers(token_type_ids!.data)).toEqual([0, 0, 0, 1, 1, 1, 1]);
  });

  it("takes several texts without a batch axis", async () => {
    const config = { batching: false };
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
    const text = what === "words" ? "the red house ".repeat(6_000) : "house".repeat(12_000);
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
    triton = new Triton({ modelRepository: models.path, exitOnError: false, logger });
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
      const rows = await triton.service.repositoryIndex(false);
      expect(rows.find(({ name }) => name === `refused${i}`)?.reason).toContain(reason);
    },
  );
});
