import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";
import { afterEach, expect, it } from "vitest";
import { STORIES } from "../support/stories.js";

let triton: Triton;
let folder: string | undefined;
afterEach(async () => {
  await triton.close();
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});

/** Serves a repository with the model in it. */
async function serve(config: string, layout: "flat" | "onnx" = "flat"): Promise<string> {
  folder = mkdtempSync(join(tmpdir(), "repository-"));
  const version = join(folder, "stories", "1");
  cpSync(STORIES, version, { recursive: true });
  if (layout === "onnx") {
    mkdirSync(join(version, "onnx"));
    cpSync(join(version, "model.onnx"), join(version, "onnx", "model.onnx"));
    rmSync(join(version, "model.onnx"));
  }
  writeFileSync(join(folder, "stories", "config.pbtxt"), config);
  triton = new Triton({ modelRepository: folder });
  const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });
  return `${addresses.http!.url}/v2/models/stories`;
}

async function generate(url: string, body: unknown): Promise<Record<string, unknown>> {
  const response = await fetch(`${url}/generate`, { method: "POST", body: JSON.stringify(body) });
  return { status: response.status, ...((await response.json()) as Record<string, unknown>) };
}

it("a model of a repository answers generate and generate_stream, with parameters of the request", async () => {
  const url = await serve('backend: "text_generation"');
  const config = (await (await fetch(`${url}/config`)).json()) as Record<string, unknown>;
  expect(config).toMatchObject({
    backend: "text_generation",
    max_batch_size: 0,
    model_transaction_policy: { decoupled: true },
  });
  const prompt = { text_input: "Once there was a red cat.", max_tokens: 20 };
  const whole = await generate(url, prompt);
  expect(whole.status).toBe(200);
  expect(whole.text_output).toMatch(/^Once there was a red cat\..{10}/);
  const response = await fetch(`${url}/generate_stream`, {
    method: "POST",
    body: JSON.stringify({ ...prompt, stream: true }),
  });
  const events = (await response.text()).split("\n\n").filter((event) => event !== "");
  const pieces = events.map((event) => JSON.parse(event.replace("data: ", "")).text_output);
  expect(prompt.text_input + pieces.join("")).toBe(whole.text_output);
  expect(pieces.length).toBeGreaterThan(5);
  expect(await generate(url, { ...prompt, max_tokens: -1 })).toMatchObject({
    status: 400,
    error: "sampling parameter 'max_tokens': expected an integer of at least 0, got -1",
  });
});

it("its configuration sets the limits, and the graph may be in the folder onnx", async () => {
  const url = await serve(
    `backend: "text_generation"
     parameters { key: "context_length" value { string_value: "30" } }
     parameters { key: "prefix_cache" value { string_value: "false" } }`,
    "onnx",
  );
  const answer = await generate(url, {
    text_input: "Once",
    return_num_output_tokens: true,
    ignore_eos: true,
  });
  expect(answer).toMatchObject({ status: 200, num_output_tokens: 28 });
});

it("a parameter keeps prefixes on disk for a model", async () => {
  const prefixes = mkdtempSync(join(tmpdir(), "prefixes-"));
  try {
    const url = await serve(
      `backend: "text_generation" parameters { key: "prefix_directory" value { string_value: "${prefixes}" } }`,
    );
    const prompt = "Once there was a red dog who lived in a big house with Tom and Mia. ".repeat(4);
    expect(await generate(url, { text_input: prompt, max_tokens: 2 })).toMatchObject({ status: 200 });
    await triton.close();
    expect(readdirSync(prefixes).length).toBeGreaterThan(1);
  } finally {
    rmSync(prefixes, { recursive: true, force: true });
  }
});

it.each([
  [
    'parameters { key: "kv_cache_bytes" value { string_value: "much" } }',
    "expected an integer of at least 1, got 'much'",
  ],
  ['parameters { key: "prefix_cache" value { string_value: "1" } }', "expected 'true' or 'false', got '1'"],
  [
    'parameters { key: "prefix_directory" value { string_value: "prefixes" } }',
    "expected an absolute path, got 'prefixes'",
  ],
  ["max_batch_size: 8", "expected max_batch_size 0"],
])("a configuration with %s is refused", async (line, text) => {
  folder = mkdtempSync(join(tmpdir(), "repository-"));
  cpSync(STORIES, join(folder, "stories", "1"), { recursive: true });
  writeFileSync(join(folder, "stories", "config.pbtxt"), `backend: "text_generation"\n${line}`);
  triton = new Triton({ modelRepository: folder });
  await expect(triton.serve({ frontends: [http({ port: 0 })] })).rejects.toThrow(text);
});
