import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TextGenerationOptions } from "@tritonjs/llm";
import { afterEach, beforeEach, expect, it } from "vitest";
import { findGraph, readModelDirectory } from "../../src/decoder/model-files.js";
import { TextTokenizer } from "../../src/text-tokenizer.js";
import { STORIES } from "../support/stories.js";
import { StoryTeller } from "../support/story-teller.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "model-files-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A copy of the model whose graph has other names. */
function withGraphs(...names: readonly string[]): string {
  const directory = join(folder, "model");
  cpSync(STORIES, directory, { recursive: true });
  mkdirSync(join(directory, "onnx"));
  for (const name of names) cpSync(join(STORIES, "model.onnx"), join(directory, name));
  if (!names.includes("model.onnx")) rmSync(join(directory, "model.onnx"));
  return directory;
}

const read = (directory: string, name: string) => JSON.parse(readFileSync(join(directory, name), "utf8"));

async function textOf(options: Partial<TextGenerationOptions>): Promise<string> {
  const teller = new StoryTeller(options);
  try {
    return await teller.text({ prompt: "Once there was", sampling: { max_tokens: 8 } });
  } finally {
    await teller.close();
  }
}

it.each([
  [["onnx/model_quantized.onnx"], {}, "onnx/model_quantized.onnx"],
  [["onnx/model_q4f16.onnx", "onnx/model_q4.onnx", "onnx/model_fp16.onnx"], {}, "onnx/model_q4.onnx"],
  [["onnx/model_q4.onnx", "onnx/model_fp16.onnx"], { executionProviders: ["cuda"] }, "onnx/model_fp16.onnx"],
  [["onnx/model.onnx", "onnx/model_q4.onnx"], { dtype: "q4" }, "onnx/model_q4.onnx"],
  [["onnx/model.onnx", "onnx/model_quantized.onnx"], { dtype: "q8" }, "onnx/model_quantized.onnx"],
  [
    ["onnx/decoder_model_merged.onnx", "onnx/decoder_model_merged_quantized.onnx"],
    {},
    "onnx/decoder_model_merged.onnx",
  ],
  [["model.onnx", "onnx/any.onnx"], { file: "onnx/any.onnx" }, "onnx/any.onnx"],
] as const)("of the graphs %j, the options %j load %s", (names, options, expected) => {
  const directory = withGraphs(...names);
  expect(findGraph(directory, options)).toBe(join(directory, expected));
});

it("a snapshot of Hugging Face's cache loads, whose files are links to blobs", async () => {
  const snapshot = join(folder, "snapshots", "abc");
  mkdirSync(snapshot, { recursive: true });
  mkdirSync(join(folder, "blobs"));
  for (const name of [
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "model.onnx",
  ]) {
    cpSync(join(STORIES, name), join(folder, "blobs", `blob-of-${name}`));
    symlinkSync(`../../blobs/blob-of-${name}`, join(snapshot, name));
  }
  expect(await textOf({ directory: snapshot })).toBe(await textOf({}));
});

it("a model of onnxruntime-genai loads by its genai_config.json", async () => {
  const directory = withGraphs("decoder.onnx");
  const { num_attention_heads, hidden_size, max_position_embeddings } = read(directory, "config.json");
  const { eos_token_id } = read(directory, "generation_config.json");
  const decoder = { filename: "decoder.onnx", num_attention_heads, hidden_size };
  const model = { context_length: max_position_embeddings, eos_token_id, decoder };
  writeFileSync(
    join(directory, "genai_config.json"),
    JSON.stringify({ model, search: { do_sample: false } }),
  );
  rmSync(join(directory, "config.json"));
  rmSync(join(directory, "generation_config.json"));
  expect(await textOf({ directory })).toBe(await textOf({}));
});

it("settings in text_config count, as models of several kinds of input have them", async () => {
  const directory = withGraphs("model.onnx");
  const config = read(directory, "config.json");
  writeFileSync(
    join(directory, "config.json"),
    JSON.stringify({ model_type: "vision", text_config: config }),
  );
  expect(await textOf({ directory })).toBe(await textOf({}));
});

it("a byte-level tokenizer may be vocab.json and merges.txt", async () => {
  const directory = withGraphs("model.onnx");
  const { model, added_tokens } = read(directory, "tokenizer.json");
  const config = read(directory, "tokenizer_config.json");
  const pairs = model.merges.map((pair: string | [string, string]) =>
    Array.isArray(pair) ? pair.join(" ") : pair,
  );
  writeFileSync(join(directory, "vocab.json"), JSON.stringify(model.vocab));
  writeFileSync(join(directory, "merges.txt"), `#version: 0.2\n${pairs.join("\n")}\n`);
  const decoder = Object.fromEntries(added_tokens.map((one: { id: number }) => [one.id, one]));
  writeFileSync(
    join(directory, "tokenizer_config.json"),
    JSON.stringify({ ...config, add_bos_token: true, added_tokens_decoder: decoder }),
  );
  const whole = new TextTokenizer({ ...(await readModelDirectory(directory)), config });
  renameSync(join(directory, "tokenizer.json"), join(directory, "unused"));
  const parts = new TextTokenizer({ ...(await readModelDirectory(directory)), config });
  for (const text of ["Once there was a dog.", "<|begin|>It's 12 o'clock\n😀"]) {
    expect(parts.encode(text, false)).toEqual(whole.encode(text, false));
    expect(parts.encode(text, true)).toEqual(whole.encode(text, true));
  }
  const unmarked = { ...config, added_tokens_decoder: decoder };
  writeFileSync(join(directory, "tokenizer_config.json"), JSON.stringify(unmarked));
  const bare = new TextTokenizer({ ...(await readModelDirectory(directory)), config });
  expect(bare.encode("a", true)).toEqual(bare.encode("a", false));
});

it("a tokenizer may be the model of SentencePiece", async () => {
  const directory = withGraphs("model.onnx");
  rmSync(join(directory, "tokenizer.json"));
  cpSync(new URL("../fixtures/sentencepiece-bpe.model", import.meta.url), join(directory, "tokenizer.model"));
  const added = { added_tokens_decoder: { "420": { content: "<|im_end|>", special: true } } };
  writeFileSync(join(directory, "tokenizer_config.json"), JSON.stringify(added));
  const tokenizer = new TextTokenizer({ ...(await readModelDirectory(directory)), config: {} });
  const ids = tokenizer.encode("The license<|im_end|>", true);
  expect([ids[0], ids.at(-1)]).toEqual([1, 420]);
  expect(tokenizer.decode(ids)).toBe("The license");
});

it.each([
  [{ add_bos_token: false }, undefined],
  [{ bos_token: "</s>" }, 2],
  [{ bos_token: { content: "<s>" } }, 1],
])("a tokenizer of SentencePiece begins texts as its configuration %j says", async (config, first) => {
  const directory = withGraphs("model.onnx");
  rmSync(join(directory, "tokenizer.json"));
  cpSync(new URL("../fixtures/sentencepiece-bpe.model", import.meta.url), join(directory, "tokenizer.model"));
  writeFileSync(join(directory, "tokenizer_config.json"), JSON.stringify(config));
  const tokenizer = new TextTokenizer({ ...(await readModelDirectory(directory)), config: {} });
  const text = tokenizer.encode("The license", false);
  expect(tokenizer.encode("The license", true)).toEqual([...(first === undefined ? [] : [first]), ...text]);
});
