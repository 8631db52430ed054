import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import OpenAI from "openai";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { tinyLlama } from "../../../../examples/llama-cpp/tiny-llama.js";
import { type LlamaCppModel, llamacpp, repositoryBackends } from "../../src/index.js";
import type { LlamaModule } from "../../src/llamacpp/llama-module.js";
import { openai } from "../../src/openai/index.js";
import { type LlamaScript, scriptedLlama } from "./support/scripted-llama.js";
import { type LlamaRecord, standInLlama } from "./support/stand-in-llama.js";

/** What the backend finds as the package `node-llama-cpp`. */
const found = vi.hoisted(() => ({ module: undefined as unknown }));
// Threads run the built package.
vi.mock("../../src/structured/structured-output.js", async () => {
  const { StructuredOutput } = await import("@tritonjs/llm");
  return { StructuredOutput };
});
vi.mock("@tritonjs/core/internal/worker", async (original) => ({
  ...(await original<object>()),
  importPeer: async () => {
    if (found.module === undefined) throw new Error("Cannot find package 'node-llama-cpp'");
    return found.module;
  },
}));

const example = fileURLToPath(new URL("../../../../examples/llama-cpp/", import.meta.url));
const isInstalled = existsSync(join(example, "node_modules", "node-llama-cpp"));

let folder: string;
let model: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "llamacpp-"));
  model = join(folder, "tiny.gguf");
  writeFileSync(model, tinyLlama());
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let triton: Triton;
let warnings: string[];
beforeEach(() => {
  warnings = [];
  triton = new Triton({
    logger: { error() {}, warn: (text: string) => void warnings.push(text), info() {}, debug() {} },
    extensions: [repository({ backends: repositoryBackends })],
  });
});
afterEach(() => triton.close());

interface Answer {
  readonly text: string;
  readonly pieces: number;
  readonly reason: string | undefined;
  readonly input: number | undefined;
  readonly output: number;
  readonly logprobs: readonly Record<string, { logprob: number; rank: number; decoded_token: string }>[];
}

function bind(options: Partial<LlamaCppModel> = {}) {
  const handle = triton.bind({ modelName: "llama", inferFunc: llamacpp({ model, ...options }) });
  const ask = async (
    input: { readonly prompt?: string; readonly tokens?: readonly number[]; readonly messages?: unknown },
    sampling: Record<string, unknown> = {},
    settings: { readonly limit?: number; readonly logprobs?: boolean } = {},
  ): Promise<Answer> => {
    const answer = { text: "", pieces: 0, reason: "", input: undefined as number | undefined, output: 0 };
    const logprobs: Answer["logprobs"][number][] = [];
    const request = {
      ...(input.prompt !== undefined && { text_input: [input.prompt] }),
      ...(input.tokens !== undefined && { input_ids: Int32Array.from(input.tokens) }),
      ...(input.messages !== undefined && { messages: [JSON.stringify(input.messages)] }),
      stream: [true],
      sampling_parameters: [JSON.stringify({ max_tokens: 12, temperature: 0, ...sampling })],
      return_finish_reason: [true],
      return_num_input_tokens: [true],
      return_num_output_tokens: [true],
      return_logprobs: [settings.logprobs === true || sampling.logprobs !== undefined],
    };
    const decoder = new TextDecoder();
    const textOf = (value: { get(i: number): unknown } | undefined) =>
      value === undefined ? "" : decoder.decode(value.get(0) as Uint8Array);
    for await (const piece of handle.stream(request)) {
      const outputs = piece as Record<string, { get(i: number): unknown } | undefined>;
      answer.text += textOf(outputs.text_output);
      answer.pieces++;
      answer.reason = textOf(outputs.finish_reason);
      answer.output += Number(outputs.num_output_tokens?.get(0) ?? 0);
      if (outputs.num_input_tokens !== undefined) answer.input = Number(outputs.num_input_tokens.get(0));
      const shown = textOf(outputs.logprobs);
      if (shown !== "" && shown !== "null") logprobs.push(...JSON.parse(shown));
      if (answer.pieces === settings.limit) break;
    }
    return { ...answer, logprobs };
  };
  return { handle, ask };
}

const engines: readonly (readonly [string, (record: LlamaRecord) => Promise<LlamaModule>])[] = [
  ["a stand-in for llama.cpp", async (record) => standInLlama(record)],
  ...(isInstalled
    ? [
        [
          "llama.cpp",
          async () => {
            const entry = createRequire(join(example, "package.json")).resolve("node-llama-cpp");
            return (await import(pathToFileURL(entry).href)) as LlamaModule;
          },
        ] as const,
      ]
    : []),
];

describe.each(engines)("with %s", (name, load) => {
  const isReal = name === "llama.cpp";
  let record: LlamaRecord;
  beforeEach(async () => {
    record = { evaluated: [], sampled: [], open: 0 };
    found.module = await load(record);
  });
  afterEach(async () => {
    await triton.close();
    if (!isReal) expect(record.open).toBe(0);
  });

  it("streams a text with its counts and its reason", async () => {
    const { ask } = bind();
    const answer = await ask({ prompt: "once upon a time" });
    expect(answer).toMatchObject({ reason: "length", output: 12 });
    expect(answer.pieces).toBeGreaterThan(2);
    expect(answer.input).toBeGreaterThan(5);
    expect((await ask({ prompt: "once upon a time" })).text).toBe(answer.text);
  });

  it("texts together are the texts alone, and more texts than slots wait", async () => {
    const { ask } = bind({ sequences: 2 });
    const prompts = ["one", "two more", "three are here", "four", "five of them"];
    const alone: string[] = [];
    for (const prompt of prompts) alone.push((await ask({ prompt })).text);
    const together = await Promise.all(prompts.map((prompt) => ask({ prompt })));
    expect(together.map(({ text }) => text)).toEqual(alone);
  });

  it("log probabilities are those of the scores, whatever the temperature is", async () => {
    const { ask } = bind();
    const greedy = await ask({ prompt: "once" }, { logprobs: 3, max_tokens: 4 });
    expect(greedy.text).toBe((await ask({ prompt: "once" }, { max_tokens: 4 })).text);
    expect(greedy.logprobs).toHaveLength(4);
    for (const token of greedy.logprobs) {
      const entries = Object.values(token).sort((a, b) => a.rank - b.rank);
      expect(entries[0]!.rank).toBe(1);
      expect(entries.map(({ logprob }) => logprob)).toEqual(
        entries.map(({ logprob }) => logprob).sort((a, b) => b - a),
      );
      expect(entries.reduce((sum, { logprob }) => sum + Math.exp(logprob), 0)).toBeLessThan(1);
    }
    const hot = await ask({ prompt: "once" }, { logprobs: 3, max_tokens: 1, temperature: 2, seed: 4 });
    const shared = Object.entries(hot.logprobs[0]!).filter(([id]) => id in greedy.logprobs[0]!);
    expect(shared.length).toBeGreaterThan(0);
    for (const [id, { logprob }] of shared) expect(logprob).toBeCloseTo(greedy.logprobs[0]![id]!.logprob, 4);
  });

  it("a seed gives the same text again", async () => {
    const { ask } = bind();
    for (const others of [{}, { presence_penalty: 0.5 }]) {
      const sampling = { temperature: 1, seed: -5, ...others };
      expect((await ask({ prompt: "once" }, sampling)).text).toBe(
        (await ask({ prompt: "once" }, sampling)).text,
      );
    }
  });

  it("a later prompt takes over the beginning that a slot has", async () => {
    const { ask } = bind({ sequences: 2 });
    const long = "a long beginning that many prompts have in common";
    await ask({ prompt: "other" });
    await ask({ prompt: `${long}, one` });
    const before = record.evaluated.length;
    const { input } = await ask({ prompt: `${long}, two` });
    if (!isReal) expect(record.evaluated[before]!.length).toBe(3);
    expect(input).toBeGreaterThan(20);
  });

  describe("with a directory of prefixes", () => {
    const long = "a long beginning that all of the prompts have in common, so that files are worth it, ";
    const prefixes = () => join(folder, `prefixes ${name}`);
    const onWarning = (line: string) => void warnings.push(line);
    const files = (ending = "") => readdirSync(prefixes()).filter((one) => one.endsWith(ending));
    beforeEach(() => rmSync(prefixes(), { recursive: true, force: true }));

    /** The text of a server that is closed afterwards, and the tokens of its first evaluation. */
    async function tell(prompt: string, options: Partial<LlamaCppModel> = {}) {
      const before = record.evaluated.length;
      const { ask } = bind({ prefixDirectory: prefixes(), onWarning, ...options });
      const { text } = await ask({ prompt });
      await triton.close();
      triton = new Triton();
      return { text, computed: record.evaluated[before]?.length };
    }

    it("a later server takes over the beginning of a prompt, and writes the same text", async () => {
      const first = await tell(`${long}one`);
      expect(files().length).toBe(2);
      const second = await tell(`${long}one`);
      expect(second.text).toBe(first.text);
      const other = await tell(`${long}two`);
      expect(other.text).toBe((await tell(`${long}two`, { prefixDirectory: undefined })).text);
      if (!isReal) {
        expect(first.computed).toBeGreaterThan(80);
        expect(second.computed).toBe(1);
        expect(other.computed).toBe(3);
      }
      // All three begin alike.
      expect(files().length).toBe(2);
      expect(warnings).toEqual([]);
    });

    it.each([
      ["cut", ".llama", (bytes: Buffer) => bytes.subarray(0, -5), /got \d+ bytes instead of \d+$/],
      [
        "changed",
        ".llama",
        (bytes: Buffer) => Buffer.from(bytes.map((one) => one ^ 1)),
        /got a wrong checksum$/,
      ],
      ["not described", ".json", () => Buffer.from("{"), /got text that does not describe one$/],
    ])("a state that is %s is ignored with a line, and written again", async (_, ending, spoil, line) => {
      const first = await tell(`${long}one`);
      const path = join(prefixes(), files(ending)[0]!);
      writeFileSync(path, spoil(readFileSync(path)));
      expect((await tell(`${long}one`)).text).toBe(first.text);
      expect(warnings).toEqual([expect.stringMatching(line)]);
      const third = await tell(`${long}one`);
      expect(third.text).toBe(first.text);
      if (!isReal) expect(third.computed).toBe(1);
      expect(warnings.length).toBe(1);
    });

    it("many texts at once, and one that leaves, have the texts that they have alone", async () => {
      const alone = (await tell(`${long}one`)).text;
      const { ask } = bind({ prefixDirectory: prefixes(), sequences: 2 });
      const leaving = ask({ prompt: `${long}one` }, {}, { limit: 1 });
      const texts = await Promise.all(Array.from({ length: 6 }, () => ask({ prompt: `${long}one` })));
      await leaving;
      expect(texts.map(({ text }) => text)).toEqual(Array(6).fill(alone));
      expect(warnings).toEqual([]);
    });
  });

  it("a chat uses the template of the file, and a prompt may be tokens", async () => {
    const { ask } = bind();
    const chat = await ask({ messages: [{ role: "user", content: "hello" }] });
    // The template of this file prints no token for the beginning, which a prompt has.
    expect((await ask({ prompt: "user: hello\nassistant: " })).input).toBe(chat.input! + 1);
    expect(chat.output).toBe(12);
    const tokens = await ask({ tokens: [1, 100, 101, 102] });
    expect(tokens).toMatchObject({ input: 4, output: 12 });
    await expect(ask({ tokens: [1, 9999] })).rejects.toThrow(
      /input 'input_ids' of model 'llama': expected token numbers from 0 to \d+, got 9999/,
    );
  });

  it("a text within a schema is valid", async () => {
    const { ask } = bind();
    const schema = {
      type: "object",
      properties: { yes: { type: "boolean" }, kind: { enum: ["a", "b"] } },
      required: ["yes", "kind"],
      additionalProperties: false,
    };
    for (const seed of [1, 2, 3]) {
      const answer = await ask(
        { prompt: "x" },
        { guided_json: schema, temperature: 1, seed, max_tokens: 200 },
      );
      expect(answer.reason).toBe("stop");
      expect(JSON.parse(answer.text)).toEqual({
        yes: expect.any(Boolean),
        kind: expect.stringMatching(/^[ab]$/),
      });
    }
  });

  it("stop texts, bad tokens and the end token end or shape a text", async () => {
    const { ask } = bind();
    const whole = await ask({ prompt: "once" }, { ignore_eos: true, max_tokens: 30 });
    const stop = [...whole.text].find((letter) => /[a-z0-9]/.test(letter))!;
    const stopped = await ask({ prompt: "once" }, { ignore_eos: true, max_tokens: 30, stop: [stop] });
    expect(stopped).toMatchObject({ reason: "stop", text: whole.text.slice(0, whole.text.indexOf(stop)) });
    const only = await ask({ prompt: "once" }, { allowed_token_ids: [3 + 0x61], max_tokens: 5 });
    expect(only.text).toBe("aaaaa");
    const ended = await ask({ prompt: "once" }, { allowed_token_ids: [2], max_tokens: 5 });
    expect(ended).toMatchObject({ text: "", reason: "stop", output: 1 });
    const late = await ask(
      { prompt: "once" },
      { allowed_token_ids: [2, 3 + 0x62], logit_bias: { 2: 100 }, min_tokens: 3 },
    );
    expect(late).toMatchObject({ text: "bbb", reason: "stop" });
  });

  it("a character of several tokens comes in one piece", async () => {
    const { ask } = bind();
    const answer = await ask({ prompt: "x" }, { guided_choice: ["ä€😀"], max_tokens: 20 });
    expect(answer).toMatchObject({ text: "ä€😀", reason: "stop" });
    const cut = await ask({ prompt: "x" }, { guided_choice: ["😀"], max_tokens: 2 });
    expect(cut.reason).toBe("length");
  });

  it("a client that leaves frees its slot, and close() in the middle ends all texts", async () => {
    const { ask } = bind({ sequences: 1 });
    expect((await ask({ prompt: "once" }, { max_tokens: 200, ignore_eos: true }, { limit: 3 })).pieces).toBe(
      3,
    );
    expect((await ask({ prompt: "once" })).output).toBe(12);
    const rest = Promise.allSettled([
      ask({ prompt: "left" }, { max_tokens: 200, ignore_eos: true }),
      ask({ prompt: "waits" }, { max_tokens: 200, ignore_eos: true }),
    ]);
    await triton.close();
    expect((await rest).map(({ status }) => status)).toHaveLength(2);
  });

  it("prompts and lengths beyond the context are refused, and the whole context can be used", async () => {
    const { ask } = bind({ contextLength: 256 });
    await expect(ask({ tokens: Array.from({ length: 256 }, () => 100) })).rejects.toThrow(
      "prompt of model 'llama': expected at most 255 tokens, because the context has 256 tokens, got 256",
    );
    await expect(ask({ tokens: [1, 100] }, { max_tokens: 255 })).rejects.toThrow(
      "max_tokens of a request to model 'llama': expected at most 254, because the context has 256 tokens and the prompt has 2, got 255",
    );
    // No token of the file has more than six bytes.
    await expect(ask({ prompt: "\n".repeat(1_000_000) })).rejects.toThrow(
      /prompt of model 'llama': expected at most 255 tokens, because the context has 256 tokens, got at least \d+/,
    );
    const tokens = [1, ...Array.from({ length: 200 }, (_, i) => 100 + (i % 50))];
    const full = await ask({ tokens }, { max_tokens: 55, ignore_eos: true });
    expect(full).toMatchObject({ output: 55, reason: "length" });
    expect((await ask({ tokens }, { max_tokens: 0 })).output).toBe(0);
    await expect(ask({ prompt: "x" }, { prompt_logprobs: 1 })).rejects.toThrow(/prompt_logprobs/);
  });

  it("metrics show the load, and statistics count the texts", async () => {
    const { handle, ask } = bind({ sequences: 3, contextLength: 256 });
    await ask({ prompt: "once" });
    const page = await triton.metrics.metrics();
    expect(page).toMatch(/^tritonjs_generation_running\{.*model="llama".*\} 0$/m);
    expect(page).toMatch(/^tritonjs_generation_token_capacity\{.*model="llama".*\} 768$/m);
    expect(Number(/^tritonjs_generation_kv_cache_usage\{.*\} (.*)$/m.exec(page)![1])).toBeGreaterThan(0);
    expect(handle.statistics().inferenceStats.success.count).toBe(1);
  });

  it("the official client of OpenAI chats and completes", async () => {
    bind();
    const { addresses } = await triton.serve({ frontends: [openai({ port: 0 })] });
    const client = new OpenAI({ baseURL: `${addresses.openai!.url}/v1`, apiKey: "none", maxRetries: 0 });
    const chat = await client.chat.completions.create({
      model: "llama",
      messages: [{ role: "user", content: "hello" }],
      max_tokens: 6,
      temperature: 0,
      logprobs: true,
      top_logprobs: 2,
    });
    expect(chat.choices[0]!.logprobs!.content).toHaveLength(chat.usage!.completion_tokens);
    let text = "";
    const stream = await client.completions.create({
      model: "llama",
      prompt: "once",
      max_tokens: 6,
      stream: true,
      temperature: 0,
    });
    for await (const chunk of stream) text += chunk.choices[0]?.text ?? "";
    const whole = await client.completions.create({
      model: "llama",
      prompt: "once",
      max_tokens: 6,
      temperature: 0,
    });
    expect(whole.choices[0]!.text).toBe(text);
  });

  describe("a chat of a model that thinks and calls tools", () => {
    const THINKS =
      "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}" +
      "{% if tools %}{{ tools | tojson }}<tool_call>{% endif %}assistant: <think>\n";
    const CHANNELS =
      "{% for m in messages %}<|channel|>functions.x{{ m.content }}{% endfor %}{{ tools }}assistant:";
    const tools = [
      {
        type: "function" as const,
        function: {
          name: "weather",
          parameters: {
            type: "object",
            properties: { city: { enum: ["Bonn"] } },
            required: ["city"],
            additionalProperties: false,
          },
        },
      },
    ];
    const call = ["<tool_call>", '{"name":"weather",', '"arguments":{"city":', '"Bonn"}}', "</tool_call>"];

    async function serve(script: LlamaScript, options: Parameters<typeof openai>[0] = {}) {
      record.script = script;
      const file = join(folder, `script-${name.length}-${script.pieces.length}.gguf`);
      writeFileSync(file, scriptedLlama(script));
      const { handle } = bind({ model: file });
      const { addresses } = await triton.serve({ frontends: [openai({ port: 0, ...options })] });
      const client = new OpenAI({ baseURL: `${addresses.openai!.url}/v1`, apiKey: "none", maxRetries: 0 });
      const messages = [{ role: "user" as const, content: "hello" }];
      const chat = async (fields: object = {}) => {
        const body = { model: "llama", messages, ...fields };
        const { choices } = await client.chat.completions.create(body as never);
        return (choices as OpenAI.ChatCompletion.Choice[])[0]!;
      };
      const stream = async (fields: object = {}) => {
        const body = { model: "llama", messages, stream: true, ...fields };
        const chunks = await client.chat.completions.create(body as never);
        const deltas: Record<string, unknown>[] = [];
        for await (const { choices } of chunks as never as AsyncIterable<OpenAI.ChatCompletionChunk>)
          deltas.push(...choices.map(({ delta }) => delta as Record<string, unknown>));
        return deltas;
      };
      return { handle, chat, stream };
    }

    it("has its reasoning in reasoning_content, whole and streamed", async () => {
      const { chat, stream } = await serve({
        template: THINKS,
        pieces: ["I", " think", ".\n", "</think>", "\n\n", "Hello", " you"],
        special: ["</think>"],
      });
      expect((await chat()).message).toMatchObject({ reasoning_content: "I think.", content: "Hello you" });
      const deltas = await stream();
      const joined = (member: string) => deltas.map((delta) => delta[member] ?? "").join("");
      expect(joined("reasoning_content")).toBe("I think.");
      expect(joined("content")).toBe("Hello you");
      expect(deltas.filter(({ reasoning_content }) => reasoning_content).length).toBeGreaterThan(1);
      const dropped = (await chat({ include_reasoning: false })).message;
      expect(dropped).toMatchObject({ content: "Hello you" });
      expect(dropped).not.toHaveProperty("reasoning_content");
      const cut = await chat({ max_tokens: 2 });
      expect(cut).toMatchObject({
        message: { reasoning_content: "I think", content: "" },
        finish_reason: "length",
      });
    });

    it("keeps its reasoning in the content by option, and for clients of the v2 protocol", async () => {
      const script = { template: THINKS, pieces: ["I think.", "</think>", "Hello"] };
      const { chat, handle } = await serve(script, { reasoningContent: false });
      expect((await chat()).message.content).toBe("I think.</think>Hello");
      const request = {
        messages: [JSON.stringify([{ role: "user", content: "hello" }])],
        stream: [false],
      };
      for (const [wanted, text, reasoning] of [
        [false, "I think.</think>Hello", undefined],
        [true, "Hello", "I think."],
      ] as const) {
        for await (const piece of handle.stream({ ...request, return_reasoning_content: [wanted] })) {
          const one = piece as unknown as Record<string, { text(): string } | undefined>;
          expect([one.text_output!.text(), one.reasoning_content?.text()]).toEqual([text, reasoning]);
        }
      }
    });

    it("finds calls after the reasoning, one entry a chunk", async () => {
      const { chat, stream } = await serve({
        template: THINKS,
        pieces: ["I", " should.", "</think>", ...call],
        special: ["</think>", "<tool_call>", "</tool_call>"],
      });
      const { message, finish_reason } = await chat({ tools });
      expect(finish_reason).toBe("tool_calls");
      expect(message).toMatchObject({
        reasoning_content: "I should.",
        content: null,
        tool_calls: [{ function: { name: "weather", arguments: '{"city":"Bonn"}' } }],
      });
      const entries = (await stream({ tools })).flatMap(({ tool_calls }) => (tool_calls ? [tool_calls] : []));
      for (const entry of entries) expect(entry).toHaveLength(1);
      const functions = entries.map(
        (entry) => (entry as { function: { arguments?: string } }[])[0]!.function,
      );
      expect(functions.map((one) => one.arguments ?? "").join("")).toBe('{"city":"Bonn"}');
    });

    it("calls a tool that it has to call, in a text of that form", async () => {
      const { chat } = await serve({ template: THINKS, pieces: ["Hello", "</think>"] });
      // The model finds white space as good as any other text, and would write nothing else.
      const space = [9, 10, 13, 32].map((byte) => [3 + byte, -100]);
      const forced = { tools, logit_bias: Object.fromEntries(space) };
      const required = await chat({ ...forced, tool_choice: "required", parallel_tool_calls: false });
      const expected = [{ function: { name: "weather", arguments: '{"city":"Bonn"}' } }];
      expect(required).toMatchObject({ finish_reason: "tool_calls", message: { tool_calls: expected } });
      const named = await chat({
        ...forced,
        tool_choice: { type: "function", function: { name: "weather" } },
      });
      expect(named).toMatchObject({ finish_reason: "stop", message: { tool_calls: expected } });
      expect((await chat({ tools, tool_choice: "none" })).message).toMatchObject({
        reasoning_content: "Hello",
      });
    });

    it("reads harmony's channels, with and without tools", async () => {
      const { chat } = await serve({
        template: CHANNELS,
        // Each piece is one token, so the second markers are written together with their text. llama.cpp knows a
        // model of this kind by the last two tokens, and ends the text at either of them.
        pieces: [
          ...["<|channel|>", "analysis", "<|message|>", "I think.", "<|end|>", "<|start|>", "assistant"],
          ...["<|channel|>final", "<|message|>Hello", "<|return|>", "<|call|>"],
        ],
        special: ["<|channel|>", "<|message|>", "<|end|>", "<|start|>", "<|return|>", "<|call|>"],
      });
      const expected = { reasoning_content: "I think.", content: "Hello" };
      expect((await chat()).message).toMatchObject(expected);
      expect((await chat({ tools })).message).toMatchObject(expected);
    });

    it("refuses tools whose calls the template does not show", async () => {
      const template = "{% for m in messages %}{{ m.content }}{% endfor %}";
      const { chat } = await serve({ template, pieces: ["Hello"] });
      await expect(chat({ tools })).rejects.toThrow(
        /400 tools of a request to model 'llama': expected a chat template in the GGUF file that shows how the model writes calls/,
      );
      expect((await chat()).message).toMatchObject({ content: "Hello" });
    });
  });

  it("texts become vectors with the task embedding", async () => {
    const embed = triton.bind({
      modelName: "embed",
      inferFunc: llamacpp({ model, task: "embedding" }),
      config: { maxBatchSize: 4 },
    });
    const { embedding } = await embed.inferBatch({ text_input: [["hello"], ["hello you"]] as never });
    expect(embedding!.shape[0]).toBe(2);
  });

  it("a model of a repository loads by one line, with options as parameters", async () => {
    const root = join(folder, `models-${name.length}`);
    const write = (model: string, config: string, content: Uint8Array) => {
      mkdirSync(join(root, model, "1"), { recursive: true });
      writeFileSync(join(root, model, "config.pbtxt"), config);
      writeFileSync(join(root, model, "1", "model.gguf"), content);
    };
    const parameter = (key: string, value: string) =>
      `parameters { key: "${key}" value { string_value: "${value}" } }`;
    const bytes = tinyLlama();
    write("good", 'backend: "llamacpp"', bytes);
    write(
      "small",
      `backend: "llamacpp"\n${parameter("sequences", "2")}\n${parameter("context_length", "256")}`,
      bytes,
    );
    write("vectors", `backend: "llamacpp"\nmax_batch_size: 4\n${parameter("task", "embedding")}`, bytes);
    write("none", `backend: "llamacpp"\n${parameter("sequences", "none")}`, bytes);
    write("text", 'backend: "llamacpp"', Buffer.from("no model"));
    write(
      "other",
      'backend: "llamacpp"',
      Buffer.from(bytes.toString("latin1").replaceAll("llama", "xlama"), "latin1"),
    );
    write("empty", 'backend: "llamacpp"', new Uint8Array());
    if (isReal) write("cut", 'backend: "llamacpp"', bytes.subarray(0, bytes.length - 1000));
    await triton.close();
    triton = new Triton({
      logger: { error() {}, warn() {}, info() {}, debug() {} },
      extensions: [repository({ modelRepository: root, exitOnError: false, backends: repositoryBackends })],
    });
    const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });
    const index = await serviceOf(triton).repositoryIndex(false);
    const reasons = Object.fromEntries(
      index.map((row) => [row.name, row.state === "READY" ? "" : String(row.reason)]),
    );
    expect(reasons).toMatchObject({ good: "", small: "", vectors: "" });
    expect(reasons.none).toContain(
      "parameter 'sequences' of model 'none': expected an integer of at least 1, got 'none'",
    );
    expect(reasons.text).toMatch(/cannot load the model .*model.gguf with llama.cpp: .*magic/);
    expect(reasons.other).toMatch(
      /cannot load the model .* with llama.cpp: unknown model architecture: 'xlama'/,
    );
    expect(reasons.empty).toMatch(/cannot load the model .* with llama.cpp: .*/);
    if (isReal)
      expect(reasons.cut).toMatch(
        /with llama.cpp: tensor 'output.weight' data is not within the file bounds/,
      );
    const response = await fetch(`${addresses.http!.url}/v2/models/good/generate`, {
      method: "POST",
      body: JSON.stringify({ text_input: "once", max_tokens: 3, temperature: 0 }),
    });
    expect(await response.json()).toMatchObject({
      model_name: "good",
      text_output: expect.stringMatching(/^once/),
    });
  });
});

it("without node-llama-cpp, an instance says what to install", async () => {
  found.module = undefined;
  const { ask } = bind();
  await expect(ask({ prompt: "x" })).rejects.toThrow(
    /cannot load llama.cpp \(Cannot find package 'node-llama-cpp'\): npm install node-llama-cpp/,
  );
});

it("invalid options are refused together", () => {
  const options = { model: "", sequences: 0, gpu: "big", task: 3, slots: 4 } as unknown as LlamaCppModel;
  expect(() => llamacpp(options)).toThrow(
    /llamacpp: unknown option 'slots': .*; model: expected the path of a GGUF file, got ""; sequences: expected an integer of at least 1, got 0; task: expected one of generation, embedding, got 3; gpu: expected one of auto, cuda, vulkan, metal, false, got big/,
  );
});
