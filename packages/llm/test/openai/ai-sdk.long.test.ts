import { rmSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { batch } from "@tritonjs/core";
import { textGeneration } from "@tritonjs/llm";
import { TritonError } from "@tritonjs/protocol";
import { embedMany, generateObject, generateText, stepCountIs, streamText, tool, type UserContent } from "ai";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { OpenAiOptions } from "../../src/openai/index.js";
import { dataUrl, picture, writeColourModel } from "../support/colour-model.js";
import {
  type Asked,
  bindText,
  newTriton,
  type Said,
  say,
  serveOpenAi,
  signalOf,
} from "./support/openai-server.js";

/** The model `m` of a server, as the SDK sees it. */
async function connect(
  answer: (asked: Asked, turn: number) => AsyncGenerator<Said> | Generator<Said>,
  options: OpenAiOptions = {},
) {
  const triton = newTriton();
  const asked: Asked[] = [];
  bindText(triton, "m", (one) => answer(one, asked.push(one) - 1));
  const baseURL = `${await serveOpenAi(triton, options)}/v1`;
  const provider = createOpenAICompatible({
    name: "triton",
    baseURL,
    apiKey: "key",
    includeUsage: true,
    supportsStructuredOutputs: true,
  });
  return { model: provider("m"), asked };
}

const call = (index: number, name: string, args: string) => ({
  index,
  id: `call_${index}`,
  type: "function",
  function: { name, arguments: args },
});
const weather = tool({
  description: "Tells the weather of a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `sunny in ${city}`,
});

describe("the ai SDK", () => {
  it("generates a text", async () => {
    const { model, asked } = await connect(() => say("Good ", "day"));
    const { text, finishReason, usage } = await generateText({
      model,
      system: "Be kind.",
      prompt: "Hello",
      maxOutputTokens: 9,
    });
    expect([text, finishReason, usage.inputTokens, usage.outputTokens]).toEqual(["Good day", "stop", 3, 2]);
    expect(asked[0]?.messages).toMatchObject([{ role: "system" }, { role: "user" }]);
    expect(asked[0]?.sampling.max_tokens).toBe(9);
  });

  it("streams a text", async () => {
    const { model } = await connect(() => say("Good ", "day"));
    const result = streamText({ model, prompt: "Hello" });
    const parts: string[] = [];
    for await (const part of result.textStream) parts.push(part);
    expect(parts).toEqual(["Good ", "day"]);
    expect(await result.finishReason).toBe("stop");
    expect((await result.usage).outputTokens).toBe(2);
  });

  it("tells the reasoning of a model from its text", async () => {
    const directory = await mkdtemp(join(tmpdir(), "ai-sdk-"));
    const chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}<think>";
    await writeFile(join(directory, "tokenizer_config.json"), JSON.stringify({ chat_template }));
    const thinking = () => say("I think.", "</think>", "Good day");
    const { model } = await connect(thinking, { chatTemplates: { m: directory } });
    const whole = await generateText({ model, prompt: "Hello" });
    expect([whole.reasoningText, whole.text]).toEqual(["I think.", "Good day"]);
    const streamed = streamText({ model, prompt: "Hello" });
    expect([await streamed.reasoningText, await streamed.text]).toEqual(["I think.", "Good day"]);
    await rm(directory, { recursive: true });
  });

  it("generates an object of a schema", async () => {
    const { model, asked } = await connect(() => say('{"name":', '"Ann"}'));
    const { object } = await generateObject({
      model,
      schema: z.object({ name: z.string() }),
      prompt: "Who?",
    });
    expect(object).toEqual({ name: "Ann" });
    expect(asked[0]?.sampling.response_format).toMatchObject({ type: "json_schema" });
  });

  it.each([false, true])("runs tools that a model calls itself, streamed: %s", async (streamed) => {
    const { model, asked } = await connect(function* ({ messages }) {
      const said = (messages as { role: string; content: string }[]).filter(({ role }) => role === "tool");
      if (said.length > 0) yield* say(`It is ${said.map(({ content }) => content).join(" and ")}.`);
      else {
        yield { tools: [call(0, "weather", '{"city":')] };
        yield {
          tools: [{ index: 0, function: { arguments: '"Rome"}' } }, call(1, "weather", '{"city":"Oslo"}')],
          reason: "tool_calls",
        };
      }
    });
    const request = { model, tools: { weather }, stopWhen: stepCountIs(3), prompt: "Weather?" };
    const text = streamed ? await streamText(request).text : (await generateText(request)).text;
    expect(text).toBe("It is sunny in Rome and sunny in Oslo.");
    expect(asked).toHaveLength(2);
  });

  it("reports a call of a tool that it does not have", async () => {
    const { model } = await connect(function* () {
      yield { tools: [call(0, "fly", "{}")], reason: "tool_calls" };
    });
    const { content } = await generateText({ model, tools: { weather }, prompt: "Fly!" });
    expect(content.find((part) => part.type === "tool-error")).toMatchObject({
      toolName: "fly",
      error: expect.stringContaining("unavailable tool"),
    });
  });

  it("cancels the generation when its signal aborts", async () => {
    const cancelled = signalOf();
    const { model } = await connect(async function* ({ signal }) {
      signal.addEventListener("abort", () => cancelled.reach(), { once: true });
      while (!signal.aborted) {
        yield { text: "word " };
        await new Promise((resolve) => setImmediate(resolve));
      }
    });
    const controller = new AbortController();
    const { textStream } = streamText({ model, prompt: "Hello", abortSignal: controller.signal });
    for await (const _ of textStream) controller.abort();
    await cancelled.reached;
  });

  it("retries what the server refuses for now, and throws other errors", async () => {
    const { model, asked } = await connect(function* (_, turn) {
      if (turn === 0) throw new TritonError("UNAVAILABLE", "full", { reason: "QUEUE_FULL", retryAfterMs: 1 });
      if (turn === 2) throw new TritonError("INVALID_ARG", "this prompt is too long");
      yield* say("done");
    });
    expect((await generateText({ model, prompt: "Hello" })).text).toBe("done");
    expect(asked).toHaveLength(2);
    await expect(generateText({ model, prompt: "Hello" })).rejects.toThrow("this prompt is too long");
    expect(asked).toHaveLength(3);
  });

  it("sends images", async () => {
    const directory = writeColourModel();
    try {
      const triton = newTriton();
      triton.bind({ modelName: "colours", inferFunc: textGeneration({ directory, intraOpNumThreads: 1 }) });
      const provider = createOpenAICompatible({ name: "triton", baseURL: `${await serveOpenAi(triton)}/v1` });
      const model = provider("colours");
      const see = (...content: UserContent & object[]) =>
        generateText({ model, messages: [{ role: "user", content }], maxRetries: 0 });
      const text = { type: "text", text: "What colour?" } as const;
      const [red, blue] = await Promise.all([picture([220, 30, 20]), picture([20, 40, 230])]);
      const image = (file: Uint8Array | string) => ({ type: "image", image: file }) as const;
      expect((await see(text, image(red))).text).toBe(" The colour is red.");
      expect((await see(image(dataUrl(blue)), text)).text).toBe(" The colour is blue.");
      expect((await see(text, image(blue), image(blue))).text).toMatch(/^ The colour is /);
      const stream = streamText({ model, messages: [{ role: "user", content: [text, image(blue)] }] });
      expect(await stream.text).toBe(" The colour is blue.");
      const broken = see(text, { ...image(red.subarray(0, 60)), mediaType: "image/png" });
      await expect(broken).rejects.toThrow("'messages[0].content[1]': cannot decode the png image");
      const many = see(text, ...Array.from({ length: 17 }, () => image(red)));
      await expect(many).rejects.toThrow("at most 16 images");
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });

  it("embeds many texts", async () => {
    const triton = newTriton();
    triton.bind({
      modelName: "lengths",
      inputs: [{ name: "text", dtype: "BYTES", shape: [1] }],
      outputs: [{ name: "embedding", dtype: "FP32", shape: [2] }],
      config: { maxBatchSize: 8 },
      inferFunc: batch(({ text }) => {
        const rows = text.shape[0] as number;
        const embedding = new Float32Array(rows * 2);
        for (let row = 0; row < rows; row++) embedding.set([text.text(row, 0).length, 0.5], row * 2);
        return { embedding };
      }),
    });
    const provider = createOpenAICompatible({ name: "triton", baseURL: `${await serveOpenAi(triton)}/v1` });
    const values = ["a", "bb", "ccc"];
    const { embeddings } = await embedMany({ model: provider.embeddingModel("lengths"), values });
    expect(embeddings).toEqual([
      [1, 0.5],
      [2, 0.5],
      [3, 0.5],
    ]);
  });
});
