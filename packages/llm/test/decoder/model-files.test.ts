import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { Triton } from "@tritonjs/core";
import type { TextGenerationOptions } from "@tritonjs/llm";
import { serviceOf } from "@tritonjs/server";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { servedOptions } from "../../../../test/support/served-options.js";
import { findGraph, readModelDirectory } from "../../src/decoder/model-files.js";
import { TextTokenizer } from "../../src/text-tokenizer.js";
import { STORIES } from "../support/stories.js";
import { StoryTeller } from "../support/story-teller.js";
import { UncachedDecoder } from "../support/uncached-decoder.js";

describe("files of a model", () => {
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

  let usual: Promise<string> | undefined;

  /** The text of the model as it is, which is generated once. */
  const usualText = () => {
    usual ??= textOf({});
    return usual;
  };

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
    [
      ["onnx/model_q4.onnx", "onnx/model_fp16.onnx"],
      { executionProviders: ["cuda"] },
      "onnx/model_fp16.onnx",
    ],
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
    expect(await textOf({ directory: snapshot })).toBe(await usualText());
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
    expect(await textOf({ directory })).toBe(await usualText());
  });

  it("settings in text_config count, as models of several kinds of input have them", async () => {
    const directory = withGraphs("model.onnx");
    const config = read(directory, "config.json");
    writeFileSync(
      join(directory, "config.json"),
      JSON.stringify({ model_type: "vision", text_config: config }),
    );
    expect(await textOf({ directory })).toBe(await usualText());
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
    cpSync(
      new URL("../fixtures/sentencepiece-bpe.model", import.meta.url),
      join(directory, "tokenizer.model"),
    );
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
    cpSync(
      new URL("../fixtures/sentencepiece-bpe.model", import.meta.url),
      join(directory, "tokenizer.model"),
    );
    writeFileSync(join(directory, "tokenizer_config.json"), JSON.stringify(config));
    const tokenizer = new TextTokenizer({ ...(await readModelDirectory(directory)), config: {} });
    const text = tokenizer.encode("The license", false);
    expect(tokenizer.encode("The license", true)).toEqual([...(first === undefined ? [] : [first]), ...text]);
  });
});

describe("linked files", () => {
  let folder: string;

  /** A snapshot as Hugging Face's cache has it: each file is a link to a blob. */
  let snapshot: string;

  let version: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "linked-files-"));
    snapshot = join(folder, "hub", "models--org--stories", "snapshots", "abc");
    const blobs = join(snapshot, "..", "..", "blobs");
    mkdirSync(snapshot, { recursive: true });
    mkdirSync(blobs);
    for (const name of readdirSync(STORIES)) {
      cpSync(join(STORIES, name), join(blobs, `blob-of-${name}`));
      symlinkSync(`../../blobs/blob-of-${name}`, join(snapshot, name));
    }
    const model = join(folder, "models", "stories");
    mkdirSync(model, { recursive: true });
    writeFileSync(join(model, "config.pbtxt"), 'backend: "text_generation"');
    version = join(model, "1");
  });

  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  /** Loads the repository. Returns the reason why the model is not ready, or "ready". */
  async function load(linked?: string): Promise<string> {
    await using triton = new Triton(
      servedOptions({
        modelRepository: join(folder, "models"),
        exitOnError: false,
        logger: { debug() {}, info() {}, warn() {}, error() {} },
        ...(linked !== undefined && { backendConfig: { text_generation: { "linked-directories": linked } } }),
      }),
    );
    await triton.serve({ frontends: [] });
    const row = (await serviceOf(triton).repositoryIndex(false)).find(({ name }) => name === "stories");
    return row!.state === "READY" ? "ready" : String(row!.reason);
  }

  const refused = /leads out of .* through a symbolic link: .* linked-directories/;

  it("a repository refuses a link from a version to a directory outside of it", async () => {
    symlinkSync(snapshot, version);
    expect(await load()).toMatch(refused);
  });

  it.each(["model.onnx", "tokenizer.json", "tokenizer_config.json"])(
    "a repository refuses a link from the file %s to a file outside of it",
    async (name) => {
      cpSync(STORIES, version, { recursive: true });
      rmSync(join(version, name));
      symlinkSync(join(snapshot, name), join(version, name));
      expect(await load()).toMatch(refused);
    },
  );

  it("a repository refuses a link behind a link to a directory inside of it", async () => {
    cpSync(STORIES, version, { recursive: true });
    const shared = join(folder, "models", "shared");
    mkdirSync(shared);
    symlinkSync(join(snapshot, "model.onnx"), join(shared, "model.onnx"));
    symlinkSync("../../shared", join(version, "onnx"));
    expect(await load()).toMatch(refused);
  });

  it("a snapshot of Hugging Face's cache loads when the setting linked-directories names the cache", async () => {
    symlinkSync(snapshot, version);
    expect(await load([join(folder, "other"), join(folder, "hub")].join(delimiter))).toBe("ready");
  });

  it("linked-directories must hold the blobs as well as the links", async () => {
    symlinkSync(snapshot, version);
    expect(await load(snapshot)).toMatch(refused);
  });

  it("a directory whose links form a circle loads", async () => {
    cpSync(STORIES, version, { recursive: true });
    symlinkSync(".", join(version, "again"));
    expect(await load()).toBe("ready");
  });
});

describe("dynamic quantization", () => {
  it("a graph with dynamic quantisation warns that texts depend on each other, unless each runs by itself", async () => {
    const directory = mkdtempSync(join(tmpdir(), "quantised-"));
    cpSync(STORIES, directory, { recursive: true });
    // The operator as a node names it, in the description of the model: field 6, with its length.
    appendFileSync(join(directory, "model.onnx"), "\x32\x17\x22\x15DynamicQuantizeLinear");
    const texts: string[] = [];
    const warned: string[][] = [];
    for (const batchInvariant of [false, true]) {
      const warnings: string[] = [];
      const teller = new StoryTeller({ directory, batchInvariant, onWarning: (text) => warnings.push(text) });
      const ask = (prompt: string) => teller.text({ prompt, sampling: { max_tokens: 10 } });
      texts.push((await Promise.all(["Once there was", "One day"].map(ask))).join("|"));
      warned.push(warnings);
      await teller.close();
    }
    rmSync(directory, { recursive: true });
    expect(texts[1]).toBe(texts[0]);
    expect(warned).toEqual([
      [
        expect.stringMatching(
          /model\.onnx quantises by the range of all texts of a run \(DynamicQuantizeLinear\)/,
        ),
      ],
      [],
    ]);
  });
});

describe("grouped attention", () => {
  let directory: string;

  let oracle: UncachedDecoder;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "grouped-attention-"));
    cpSync(STORIES, directory, { recursive: true });
    cpSync(new URL("../fixtures/gqa.onnx", import.meta.url), join(directory, "model.onnx"));
    const config = JSON.parse(readFileSync(join(STORIES, "config.json"), "utf8"));
    const own = { num_attention_heads: 2, num_key_value_heads: 1, head_dim: 16, hidden_size: 32 };
    writeFileSync(join(directory, "config.json"), JSON.stringify({ ...config, ...own }));
    oracle = await UncachedDecoder.open(directory);
  });

  afterAll(async () => {
    await oracle.release();
    rmSync(directory, { recursive: true, force: true });
  });

  const PROMPTS = [
    "Once",
    "Once there was a red cat. The cat was called Mia",
    "One day Tom",
    "Once there was a red cat. The cat was sad and",
    "A dog",
  ];

  it.each([{ prefillTokens: 4 }, { prefixCache: false, maxRunningRequests: 3 }])(
    "texts of different lengths run together with grouped attention, and stay what they are alone (%j)",
    async (options) => {
      const teller = new StoryTeller({ directory, ...options });
      try {
        const texts = PROMPTS.map((prompt, i) =>
          teller.text({ prompt, sampling: { max_tokens: 8 + 4 * i } }),
        );
        const later = texts[0]!.then(() =>
          teller.text({ prompt: PROMPTS[3]!, sampling: { max_tokens: 12 } }),
        );
        const expected = PROMPTS.map((prompt, i) => oracle.text(prompt, 8 + 4 * i));
        expect(await Promise.all(texts)).toEqual(await Promise.all(expected));
        expect(await later).toBe(await oracle.text(PROMPTS[3]!, 12));
      } finally {
        await teller.close();
      }
    },
  );
});
