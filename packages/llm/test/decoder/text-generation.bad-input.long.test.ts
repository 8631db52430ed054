import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { textGeneration } from "@tritonjs/llm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { identityOnnx } from "../../../../test/support/onnx-models.js";
import { STORIES } from "../support/stories.js";
import { StoryTeller, type Wish } from "../support/story-teller.js";

let teller: StoryTeller;
let folder: string;
beforeAll(() => {
  // 100 tokens of 512 bytes, twice.
  teller = new StoryTeller({ kvCacheBytes: 100 * 2 * 512 });
  folder = mkdtempSync(join(tmpdir(), "decoder-"));
});
afterAll(async () => {
  await teller.close();
  rmSync(folder, { recursive: true, force: true });
});

describe("a request", () => {
  const user = (content: unknown) => ({ messages: [{ role: "user", content }] });
  it.each<[string, Wish, string]>([
    [
      "with a prompt longer than its space for keys and values",
      { prompt: "cat ".repeat(200) },
      "expected at most 99 tokens, because kvCacheBytes of 102400 has room for 100 tokens, got 204",
    ],
    ["with a prompt of 10 MB", { prompt: "a".repeat(10_000_000) }, "got at least"],
    ["with a message of 10 MB", user("a dog ".repeat(1_600_000)), "got at least"],
    ["with a text in which every letter is a token", { prompt: "x".repeat(1250) }, "got at least"],
    [
      "for more tokens than there is room for",
      { prompt: "Once", sampling: { max_tokens: 1000 } },
      "and the prompt has 2, got 1000",
    ],
    ["with an invalid parameter", { prompt: "Once", sampling: { top_p: 2 } }, "'top_p'"],
    ["without a prompt", {}, "expected one of the inputs 'text_input' and 'messages', got none of them"],
    ["with a prompt and messages", { prompt: "Once", ...user("a") }, "got both"],
    ["with no messages", { messages: [] }, "input 'messages': expected at least one message, got none"],
    [
      "with messages that are not a list",
      { messages: {} },
      "input 'messages': expected a JSON array, got {}",
    ],
    [
      "with a message that is not an object",
      { messages: ["hello"] },
      "input 'messages[0]': expected an object with a role, got \"hello\"",
    ],
    [
      "that streams with its prompt",
      { prompt: "Once", inputs: { exclude_input_in_output: [false] } },
      "When streaming, `exclude_input_in_output` = False is not allowed.",
    ],
    [
      "for a structure that cannot be compiled",
      { prompt: "Once", sampling: { guided_regex: "(" } },
      "cannot",
    ],
  ])("%s is refused, and others go on", async (_, wish, text) => {
    const sampling = { max_tokens: 12 };
    const [beside, refused] = await Promise.all([
      teller.text({ prompt: "Once there was", sampling }),
      teller.all(wish).catch((error: Error) => error.message),
    ]);
    expect(refused).toContain(text);
    expect(beside).toBe(await teller.text({ prompt: "Once there was", sampling }));
  });
});

/** A copy of the model with changed files; null removes one. */
function changed(name: string, files: Readonly<Record<string, string | null>>): string {
  const directory = join(folder, name);
  cpSync(STORIES, directory, { recursive: true });
  for (const [file, content] of Object.entries(files)) {
    if (content === null) rmSync(join(directory, file));
    else writeFileSync(join(directory, file), content);
  }
  return directory;
}

/** The error of binding or loading a model. */
async function failure(options: Parameters<typeof textGeneration>[0]): Promise<string> {
  const triton = new Triton();
  try {
    const model = triton.bind({ modelName: "broken", inferFunc: textGeneration(options) });
    await model.ready();
    return "none";
  } catch (error) {
    return (error as Error).message;
  } finally {
    await triton.close();
  }
}

describe("a model", () => {
  it.each<[string, Readonly<Record<string, string | null>>, string]>([
    [
      "no tokenizer",
      { "tokenizer.json": null },
      "expected the file tokenizer.json, tokenizer.model, or vocab.json and merges.txt",
    ],
    ["no configuration", { "config.json": null }, "expected the file config.json or genai_config.json"],
    ["no graph", { "model.onnx": null }, "expected model.onnx, onnx/model.onnx, decoder_model_merged.onnx"],
    [
      "a graph outside of its directory",
      { "genai_config.json": '{"model":{"decoder":{"filename":"../model.onnx"}}}' },
      "expected the path of a graph inside",
    ],
    [
      "a broken config.json",
      { "config.json": "{" },
      "config.json: expected a JSON object, got text that is not JSON",
    ],
    [
      "an impossible config.json",
      { "config.json": '{"max_position_embeddings":"long"}' },
      "expected 'max_position_embeddings' to be an integer of at least 1, got \"long\"",
    ],
    ["no length of its context", { "config.json": "{}" }, "expected 'max_position_embeddings'"],
    ["a file that is not a tokenizer", { "tokenizer.json": "{}" }, "expected a tokenizer of Hugging Face"],
    [
      "an impossible end token",
      { "generation_config.json": '{"eos_token_id":"end"}' },
      "expected 'eos_token_id' to be a token number or a list of them",
    ],
  ])("with %s does not load", async (name, files, text) => {
    expect(await failure({ directory: changed(name.replaceAll(" ", "-"), files) })).toContain(text);
  });

  it("whose graph is not a decoder does not load", async () => {
    const directory = changed("no-decoder", {});
    writeFileSync(join(directory, "model.onnx"), identityOnnx("FLOAT", ["rows", 2]));
    expect(await failure({ directory })).toContain(
      "expected the inputs of a text decoder, got the input 'x'",
    );
    writeFileSync(join(directory, "model.onnx"), "not a graph");
    expect(await failure({ directory })).toContain("model.onnx");
  });

  it("with options or a directory that cannot be used is not bound", async () => {
    expect(await failure({ directory: STORIES, kvCacheBytes: 0, prefillTokens: 1.5 })).toContain(
      "kvCacheBytes: expected an integer of at least 1, got 0; prefillTokens: expected an integer of at least 1, got 1.5",
    );
    expect(await failure({ directory: STORIES, dtype: "q5" as "q4" })).toContain(
      "dtype: expected one of fp32, fp16, q8, int8, uint8, q4, q4f16, bnb4, got q5",
    );
    expect(await failure({ directory: STORIES, dtype: "q4" })).toContain(
      "expected model_q4.onnx, onnx/model_q4.onnx, decoder_model_merged_q4.onnx",
    );
    expect(await failure({ directory: STORIES, file: "other.onnx" })).toContain(
      "expected the graph other.onnx",
    );
    expect(await failure({ directory: join(folder, "nowhere") })).toContain("expected a directory at");
    expect(await failure({ directory: STORIES, kvCacheBytes: 1000 })).toContain(
      "expected kvCacheBytes of at least 2048, which is two tokens, got 1000",
    );
  });
});
