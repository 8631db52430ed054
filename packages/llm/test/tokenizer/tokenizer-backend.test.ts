import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";
import { tokenizer } from "@tritonjs/llm/tokenizer";
import { describe, expect, it } from "vitest";
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
  it("makes tokens of texts, padded to the longest of a request, and texts of tokens", async () => {
    await using triton = new Triton();
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
    await using triton = new Triton();
    const pairs = triton.bind({
      modelName: "pairs",
      inferFunc: tokenizer({ directory, pairTemplate: "the {} house" }),
    });
    const { input_ids, token_type_ids } = await pairs.inferSample({ text: ["Anna"], text_pair: ["red"] });
    expect(input_ids!.shape).toEqual([7]);
    expect(numbers(token_type_ids!.data)).toEqual([0, 0, 0, 1, 1, 1, 1]);
  });

  it("takes several texts without a batch axis", async () => {
    await using triton = new Triton();
    const config = { batching: false };
    const encode = triton.bind({ modelName: "encode", inferFunc: tokenizer({ directory }), config });
    const back = tokenizer({ directory, direction: "decode" });
    const decode = triton.bind({ modelName: "decode", inferFunc: back, config });
    const { input_ids } = await encode.infer({ text: [["the red house"], ["Anna"]] });
    expect(input_ids!.shape).toEqual([2, 5]);
    const { text } = await decode.infer({ ids: input_ids! });
    expect(text!.shape).toEqual([2, 1]);
  });

  it("works on the caller's thread with isolation 'inline'", async () => {
    await using triton = new Triton();
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
    await using triton = new Triton();
    const inline = triton.bind({
      modelName: "inline",
      inferFunc: tokenizer({ directory: new URL(`fixtures/${kind}`, import.meta.url) }),
      config: { instanceGroup: [{ isolation: "inline" }] },
    });
    const text = what === "words" ? "the red house ".repeat(20_000) : "house".repeat(50_000);
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

const SILENT = { error() {}, warn() {}, info() {}, debug() {} };

/** A repository with one tokenizer, which is served; its other model shows that it keeps serving. */
async function serving(config: string, file = bert) {
  const models = await RepositoryOnDisk.create({
    "tokens/config.pbtxt": `backend: "tokenizer"\n${config}`,
    ...(file === "" ? { "tokens/1/": "" } : { "tokens/1/tokenizer.json": file }),
    "same/1/model.mjs": "export default (requests) => requests.map(({ inputs }) => ({ y: inputs.x }));",
    "same/config.pbtxt": `backend: "javascript" default_model_filename: "model.mjs" max_batch_size: 4
      input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ] output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]`,
  });
  const triton = new Triton({ modelRepository: models.path, exitOnError: false, logger: SILENT });
  await triton.ready();
  return {
    triton,
    reason: async () => {
      const rows = await triton.service.repositoryIndex(false);
      expect(rows.find(({ name }) => name === "same")!.state).toBe("READY");
      return rows.find(({ name }) => name === "tokens")!.reason;
    },
    async [Symbol.asyncDispose]() {
      await triton.close();
      await models[Symbol.asyncDispose]();
    },
  };
}

describe("a tokenizer of a repository", () => {
  it("completes its configuration, and answers over HTTP", async () => {
    await using server = await serving("");
    const { addresses } = await server.triton.serve({ frontends: [http({ port: 0 })] });
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
    await using server = await serving(`
      input [ { name: "sequence" data_type: TYPE_STRING dims: [ 1 ] }, { name: "labels" data_type: TYPE_STRING dims: [ -1 ] } ]
      output [ { name: "input_ids" data_type: TYPE_INT32 dims: [ -1, -1 ] }, { name: "attention_mask" data_type: TYPE_INT32 dims: [ -1, -1 ] } ]
      parameters { key: "pair_template" value: { string_value: "it is {}." } }
      parameters { key: "padding" value: { string_value: "max_length" } }
      parameters { key: "max_length" value: { string_value: "16" } }`);
    const call = (labels: string[]) => server.triton.infer("tokens", { sequence: ["the red house"], labels });
    const { input_ids, attention_mask } = await call(["red", "tiny", "a child"]);
    expect(input_ids).toMatchObject({ dtype: "int32", shape: [3, 16] });
    expect(attention_mask!.shape).toEqual([3, 16]);
    expect(await refusal(call([]))).toContain("input 'labels': expected at least one text, got none");
    expect(await refusal(call(["red", ""]))).toContain(
      "input 'labels', row 1: expected a text, got an empty one",
    );
  });

  it("decodes if its input has integers", async () => {
    await using server = await serving(`max_batch_size: 8
      input [ { name: "answer" data_type: TYPE_INT32 dims: [ -1 ] } ]
      output [ { name: "said" data_type: TYPE_STRING dims: [ 1 ] } ]`);
    const { said } = await server.triton.infer("tokens", { answer: [[2, 3]] });
    expect(said!.shape).toEqual([1, 1]);
    expect(await refusal(server.triton.infer("tokens", { answer: [[5, 9999]] }))).toContain(
      "input 'answer': expected token numbers from 0 to ",
    );
  });

  it("refuses texts that are not UTF-8, empty, too large or too long; others of a batch are answered", async () => {
    await using server = await serving(`
      parameters { key: "max_bytes" value: { string_value: "100" } }
      parameters { key: "max_length" value: { string_value: "6" } }
      parameters { key: "truncation" value: { string_value: "none" } }`);
    const call = (...texts: (string | Uint8Array)[]) =>
      server.triton.infer("tokens", { text: texts.map((text) => [text]) });
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

  it.each([
    ["no file", "", "", "expected the file"],
    ["a file that is not JSON", "", "tokens", "tokenizer.json: expected a JSON object, got Unexpected token"],
    ["a list", "", "[]", "tokenizer.json: expected a JSON object, got a list"],
    ["another document", "", "{}", "expected a tokenizer of Hugging Face, got"],
    [
      "an unknown parameter",
      'parameters { key: "length" value: { string_value: "5" } }',
      bert,
      "model 'tokens': expected only the parameters add_special_tokens,",
    ],
    [
      "a wrong parameter",
      'parameters { key: "max_length" value: { string_value: "many" } }',
      bert,
      "parameter 'max_length' of model 'tokens': expected a number, got 'many'",
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
  ])("with %s is not loaded, and the other model is", async (_, config, file, reason) => {
    await using server = await serving(config, file);
    expect(await server.reason()).toContain(reason);
  });
});
