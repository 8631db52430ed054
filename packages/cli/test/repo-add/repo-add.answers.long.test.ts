import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";
import { openai } from "@tritonjs/llm/openai";
import { repository as withRepository } from "@tritonjs/repository";
import { readPrototxt } from "@tritonjs/repository/config";
import sharp from "sharp";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { addModel } from "../../src/index.js";
import {
  bertDirectory,
  classifierGraph,
  encoderGraph,
  imageGraph,
  root,
  vectorOf,
  writeFiles,
} from "./source-layouts.js";

const folder = mkdtempSync(join(tmpdir(), "repo-add-"));
afterAll(() => rmSync(folder, { recursive: true }));

let places = 0;
const fresh = (name = "place") => join(folder, `${name}-${places++}`);

const open: Triton[] = [];
afterEach(async () => {
  for (const triton of open.splice(0)) await triton.close();
});

const quiet = { error() {}, warn() {}, info() {}, debug() {} };

async function serve(repository: string): Promise<{ readonly v2: string; readonly openai: string }> {
  const triton = new Triton({ logger: quiet, extensions: [withRepository({ modelRepository: repository })] });
  open.push(triton);
  await triton.ready();
  const { addresses } = await triton.serve({ frontends: [http({ port: 0 }), openai({ port: 0 })] });
  return { v2: addresses.http!.url, openai: addresses.openai!.url };
}

interface Answer {
  readonly error?: string;
  readonly outputs: readonly {
    readonly name: string;
    readonly shape: number[];
    readonly data: (number | string)[];
  }[];
}

async function infer(base: string, model: string, inputs: object[], outputs?: object[]): Promise<Answer> {
  const response = await fetch(`${base}/v2/models/${model}/infer`, {
    method: "POST",
    body: JSON.stringify({ inputs, ...(outputs && { outputs }) }),
  });
  const answer = (await response.json()) as Answer;
  expect(answer.error).toBeUndefined();
  return answer;
}

const text = (name: string, ...data: string[]) => ({
  name,
  datatype: "BYTES",
  shape: [data.length, 1],
  data,
});

const post = async (url: string, body: object) =>
  (await (await fetch(url, { method: "POST", body: JSON.stringify(body) })).json()) as never;

/** The mean vector of the tokens that the tokenizer step of a model gives for a text. */
async function meanVector(v2: string, model: string, words: string): Promise<number[]> {
  const { outputs } = await infer(v2, `${model}_tokens`, [text("text", words)]);
  const [ids, mask] = ["input_ids", "attention_mask"].map(
    (name) => outputs.find((one) => one.name === name)!.data as number[],
  );
  const kept = ids!.filter((_, i) => mask![i] === 1).map(vectorOf);
  return vectorOf(0).map((_, i) => kept.reduce((sum, vector) => sum + vector[i]!, 0) / kept.length);
}

const close = (given: readonly (number | string)[], expected: readonly number[]) => {
  expect(given).toHaveLength(expected.length);
  for (const [i, value] of expected.entries()) expect(given[i]).toBeCloseTo(value, 5);
};

describe("directories of Hugging Face answer over HTTP", () => {
  it("embeddings: the mean of the tokens without padding, of length 1", async () => {
    const source = bertDirectory(
      fresh("minilm"),
      { architectures: ["BertModel"], model_type: "bert", max_position_embeddings: 512 },
      {
        "onnx/model.onnx": encoderGraph(),
        "onnx/model_quantized.onnx": encoderGraph(),
        "1_Pooling/config.json": { word_embedding_dimension: 4, pooling_mode_mean_tokens: true },
        "modules.json": ["Transformer", "Pooling", "Normalize"].map((name) => ({
          type: `sentence_transformers.models.${name}`,
        })),
        "sentence_bert_config.json": { max_seq_length: 256 },
        "tokenizer_config.json": { model_max_length: 512 },
      },
    );
    const repository = fresh("models");
    const added = await addModel({ source, repository, name: "minilm", dtype: "q8" });
    expect(added.models).toEqual(["minilm_tokens", "minilm_model", "minilm"]);
    expect(added.kind).toBe("embeddings, BertModel");
    expect(readFileSync(join(repository, "minilm_tokens/config.pbtxt"), "utf8")).toMatch(
      /"max_length" value: \{ string_value: "256"/,
    );
    const { v2, openai: base } = await serve(repository);
    const texts = ["the red house", "Anna"];
    const { outputs } = await infer(v2, "minilm", [text("text", ...texts)]);
    expect(outputs.map(({ name, shape }) => [name, shape])).toEqual([["embedding", [2, 4]]]);
    const expected = await Promise.all(
      texts.map(async (words) => {
        const mean = await meanVector(v2, "minilm", words);
        const length = Math.hypot(...mean);
        return mean.map((value) => value / length);
      }),
    );
    close(outputs[0]!.data, expected.flat());
    const { data } = (await post(`${base}/v1/embeddings`, { model: "minilm", input: texts })) as {
      data: { embedding: number[] }[];
    };
    close(
      data.flatMap(({ embedding }) => embedding),
      expected.flat(),
    );
  });

  it.each([
    ["pooling_mode_cls_token", 11, (vectors: number[][]) => vectors[0]!],
    [
      "pooling_mode_max_tokens",
      12,
      (vectors: number[][]) => vectors[0]!.map((_, i) => Math.max(...vectors.map((one) => one[i]!))),
    ],
    ["pooling_mode_lasttoken", 17, (vectors: number[][]) => vectors.at(-1)!],
    [
      "pooling_mode_mean_sqrt_len_tokens",
      12,
      (vectors: number[][]) =>
        vectors[0]!.map((_, i) => vectors.reduce((sum, one) => sum + one[i]!, 0) / Math.sqrt(vectors.length)),
    ],
  ] as const)("embeddings by %s, operator set %i", async (member, opset, pool) => {
    const source = bertDirectory(
      fresh("pooled"),
      { architectures: ["BertModel"] },
      {
        "model.onnx": encoderGraph(opset),
        "1_Pooling/config.json": { [member]: true },
        "modules.json": [
          { type: "sentence_transformers.models.Transformer" },
          { type: "sentence_transformers.models.Pooling" },
        ],
      },
    );
    const repository = fresh("models");
    await addModel({ source, repository, name: "pooled" });
    const { v2 } = await serve(repository);
    const { outputs } = await infer(v2, "pooled", [text("text", "the red house", "Anna")]);
    for (const [row, words] of ["the red house", "Anna"].entries()) {
      const tokens = (await infer(v2, "pooled_tokens", [text("text", words)])).outputs;
      const ids = tokens.find(({ name }) => name === "input_ids")!.data as number[];
      close(outputs[0]!.data.slice(row * 4, row * 4 + 4), pool(ids.map(vectorOf)));
    }
  });

  it("a classifier of texts: shares with the names of the classes", async () => {
    const source = bertDirectory(
      fresh("sentiment"),
      {
        architectures: ["BertForSequenceClassification"],
        id2label: { 0: "NEGATIVE", 1: "NEU TRAL", 2: "POSITIVE" },
      },
      { "onnx/model.onnx": classifierGraph(3) },
    );
    const repository = fresh("models");
    await addModel({ source, repository, name: "sentiment" });
    const { v2 } = await serve(repository);
    const { outputs } = await infer(v2, "sentiment", [text("text", "the red house")]);
    const powers = (await meanVector(v2, "sentiment", "the red house")).slice(0, 3).map(Math.exp);
    const sum = powers.reduce((a, b) => a + b, 0);
    close(
      outputs[0]!.data,
      powers.map((power) => power / sum),
    );
    const top = await infer(
      v2,
      "sentiment",
      [text("text", "the red house")],
      [{ name: "scores", parameters: { classification: 1 } }],
    );
    expect(String(top.outputs[0]!.data[0])).toMatch(/:2:POSITIVE$/);
  });

  it("a cross-encoder: the score of a query and a document, and /v1/rerank", async () => {
    const source = bertDirectory(
      fresh("ranker"),
      {
        architectures: ["BertForSequenceClassification"],
        id2label: { 0: "LABEL_0" },
        sbert_ce_default_activation_function: "torch.nn.modules.linear.Identity",
      },
      { "model.onnx": classifierGraph(1, ["input_ids", "attention_mask", "token_type_ids"]) },
    );
    const repository = fresh("models");
    const added = await addModel({ source, repository, name: "ranker" });
    expect(added.kind).toBe("cross-encoder, BertForSequenceClassification");
    const { v2, openai: base } = await serve(repository);
    const pair = [text("query", "red"), text("document", "the red house")];
    const { outputs } = await infer(v2, "ranker", pair);
    const tokens = (await infer(v2, "ranker_tokens", pair)).outputs;
    const ids = tokens.find(({ name }) => name === "input_ids")!.data as number[];
    const mean = ids.reduce((sum, id) => sum + vectorOf(id)[0]!, 0) / ids.length;
    close(outputs[0]!.data, [mean]);
    const { results } = (await post(`${base}/v1/rerank`, {
      model: "ranker",
      query: "red",
      documents: ["the red house", "Anna"],
    })) as { results: { index: number; relevance_score: number }[] };
    expect(results.find(({ index }) => index === 0)!.relevance_score).toBeCloseTo(mean, 5);
  });

  it("a classifier of images, with the preprocessing of its directory", async () => {
    const source = writeFiles(fresh("colours"), {
      "config.json": {
        architectures: ["ViTForImageClassification"],
        id2label: { 0: "red", 1: "green", 2: "blue" },
      },
      "preprocessor_config.json": {
        do_resize: true,
        size: { height: 8, width: 8 },
        resample: 2,
        rescale_factor: 1 / 255,
        image_mean: [0.5, 0.5, 0.5],
        image_std: [0.5, 0.5, 0.5],
      },
      "onnx/model.onnx": imageGraph(),
    });
    const repository = fresh("models");
    await addModel({ source, repository, name: "colours" });
    const { v2 } = await serve(repository);
    const picture = await sharp({
      create: { width: 32, height: 16, channels: 3, background: { r: 255, g: 51, b: 0 } },
    })
      .png()
      .toBuffer();
    const header = JSON.stringify({
      inputs: [
        {
          name: "image",
          shape: [1, 1],
          datatype: "BYTES",
          parameters: { binary_data_size: picture.length + 4 },
        },
      ],
    });
    const response = await fetch(`${v2}/v2/models/colours/infer`, {
      method: "POST",
      headers: { "inference-header-content-length": String(header.length) },
      body: Buffer.concat([Buffer.from(header), Buffer.from(Uint32Array.of(picture.length).buffer), picture]),
    });
    const { outputs } = (await response.json()) as Answer;
    const powers = [1, -0.6, -1].map(Math.exp);
    const sum = powers.reduce((a, b) => a + b, 0);
    close(
      outputs[0]!.data,
      powers.map((power) => power / sum),
    );
    expect(readFileSync(join(repository, "colours_model/labels.txt"), "utf8")).toBe("red\ngreen\nblue\n");
  });

  it("a decoder with its chat template, by generate and by /v1/chat/completions", async () => {
    const source = join(root, "examples/text-generation/models/stories/1");
    const repository = fresh("models");
    const { kind } = await addModel({ source, repository, name: "stories", link: true });
    expect(kind).toMatch(/^text generation, /);
    expect(statSync(join(repository, "stories/1/model.onnx")).ino).toBe(
      statSync(join(source, "model.onnx")).ino,
    );
    const { v2, openai: base } = await serve(repository);
    const { text_output: story } = (await post(`${v2}/v2/models/stories/generate`, {
      text_input: "Once there was a red dog.",
      max_tokens: 8,
    })) as { text_output: string };
    expect(story).toMatch(/^Once there was a red dog\. The dog was called/);
    const { choices } = (await post(`${base}/v1/chat/completions`, {
      model: "stories",
      max_tokens: 4,
      messages: [{ role: "user", content: "Tell me of a dog." }],
    })) as { choices: { message: { content: string } }[] };
    expect(choices[0]!.message.content).not.toBe("");
  });
});

describe("model files answer over HTTP", () => {
  it("an ONNX file with external data, and another version of it", async () => {
    const source = join(root, "examples/quickstart/iris/iris.onnx");
    const repository = fresh("models");
    await addModel({ source, repository });
    const second = await addModel({ source, repository, version: 2 });
    expect([second.name, second.version]).toEqual(["iris", 2]);
    expect(readdirSync(join(repository, "iris")).sort()).toEqual(["1", "2", "config.pbtxt"]);
    const { input, maxBatchSize } = readPrototxt(readFileSync(join(repository, "iris/config.pbtxt")));
    expect([input.length, maxBatchSize]).toEqual([1, 32]);
    const { v2 } = await serve(repository);
    const { name, dims } = input[0]!;
    const row = { name, datatype: "FP32", shape: [1, ...dims], data: [5.1, 3.5, 1.4, 0.2] };
    expect((await infer(v2, "iris", [row])).outputs.length).toBeGreaterThan(0);
  });

  it("trees of XGBoost, with the answers of predict", async () => {
    const repository = fresh("models");
    await addModel({ source: join(root, "examples/tree-ensemble/model/fraud.json"), repository });
    const { v2 } = await serve(repository);
    const row = { name: "input__0", datatype: "FP32", shape: [1, 5], data: [640, 3, 900, 4, 5] };
    expect((await infer(v2, "fraud", [row])).outputs[0]!.data[0]).toBeCloseTo(0.9248, 4);
  });
});
