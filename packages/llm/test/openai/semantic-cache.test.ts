import OpenAI from "openai";
import { afterEach, describe, expect, it, vi } from "vitest";
import { openAiFetchHandler } from "../../src/openai/index.js";
import type { SemanticCacheOptions } from "../../src/openai/semantic-cache.js";
import { textEmbedder } from "../../src/text-generator.js";
import { bindText, eventsOf, newTriton, post, type Said, say, serveOpenAi } from "./support/openai-server.js";

const FILLERS = new Set(["the", "a", "is", "what", "of", "please", "tell", "me"]);

/** Counts the words that matter, so texts that differ in the others are the same. */
function wordVector(text: string): number[] {
  const vector = new Array<number>(64).fill(0);
  for (const word of text.toLowerCase().match(/\p{L}+/gu) ?? []) {
    if (FILLERS.has(word)) continue;
    const hash = [...word].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)!) % 8191, 7);
    vector[hash % 64]!++;
  }
  return vector;
}

async function serve(
  cache: Partial<SemanticCacheOptions> = {},
  answer?: (prompt: string) => Generator<Said>,
  warnings: string[] = [],
) {
  const triton = newTriton({}, warnings);
  let count = 0;
  let embedded = 0;
  const chat = bindText(triton, "chat", ({ messages }) => {
    const { content } = (messages as { content: unknown }[]).at(-1)!;
    return (answer ?? ((text) => say("answer ", `${++count} `, `to ${text}`)))(JSON.stringify(content));
  });
  triton.bind({
    modelName: "embed",
    inferFunc: textEmbedder((texts) => {
      embedded += texts.length;
      if (texts.some((text) => text.includes("no embedding"))) throw new Error("the embedding failed");
      return texts.map(wordVector);
    }),
    config: { maxBatchSize: 8 },
  });
  const url = await serveOpenAi(triton, { semanticCache: { model: "embed", threshold: 0.9, ...cache } });
  const body = (content: unknown, fields: object) => ({
    model: "chat",
    temperature: 0,
    messages: [{ role: "user", content }],
    ...fields,
  });
  const ask = async (content: unknown, fields: object = {}, headers: Record<string, string> = {}) => {
    const response = await post(`${url}/v1/chat/completions`, body(content, fields), { headers });
    const state = response.headers.get("x-semantic-cache");
    const similarity = response.headers.get("x-semantic-cache-similarity");
    const json = (await response.json()) as { choices: [{ message: { content: string } }]; usage: object };
    return { state, similarity, status: response.status, text: json.choices?.[0].message.content, json };
  };
  return { triton, chat, url, ask, body, embedded: () => embedded };
}

afterEach(() => {
  vi.useRealTimers();
});

it("answers a question that means the same with the answer to the first one", async () => {
  const { ask, triton } = await serve({ exactTerms: false });
  const first = await ask("What is the capital of France?");
  expect(first).toMatchObject({ state: "miss", similarity: null });
  const second = await ask("Please tell me the capital of France");
  expect(second).toMatchObject({ state: "hit", similarity: "1.0000", text: first.text });
  expect(second.json.usage).toEqual(first.json.usage);
  const other = await ask("What is the capital of Spain?");
  expect(other).toMatchObject({ state: "miss", similarity: "0.5000" });
  expect(other.text).not.toBe(first.text);
  const page = await triton.metrics.metrics();
  expect(page).toMatch(/^tritonjs_semantic_cache_requests_total\{model="chat",result="hit"\} 1$/m);
  expect(page).toMatch(/^tritonjs_semantic_cache_requests_total\{model="chat",result="miss"\} 2$/m);
});

it.each([
  ["What is 2 plus 2?", "What is 2 plus 3?", "2 plus 2"],
  ["Is it far to Bonn?", "is it far to Berlin", "Far to Bonn?"],
  ["Does the GTX-1080 fit?", "does the GTX-1070 fit", "The GTX-1080: does it fit, please"],
])("never takes an answer with other numbers or names: %s", async (first, other, same) => {
  const { ask } = await serve({ threshold: 0.3 });
  const { text } = await ask(first);
  expect(await ask(other)).toMatchObject({ state: "miss", similarity: null });
  expect(await ask(same)).toMatchObject({ state: "hit", text });
});

it("keeps the answer of a stream, and replays answers as streams", async () => {
  const { ask, url, body } = await serve();
  const stream = async (content: string) => {
    const fields = { stream: true, stream_options: { include_usage: true } };
    const response = await post(`${url}/v1/chat/completions`, body(content, fields));
    const events = await eventsOf(response);
    const words = events.flatMap((event) => event.choices?.[0]?.delta?.content || []);
    return { state: response.headers.get("x-semantic-cache"), events, words };
  };
  const first = await stream("capital of France");
  const second = await stream("the capital of France");
  expect([first.state, second.state]).toEqual(["miss", "hit"]);
  expect(second.words.join("")).toBe(first.words.join(""));
  expect(second.words.length).toBeGreaterThan(2);
  expect(second.events.at(-1)).toBe("[DONE]");
  expect(second.events.at(-2)).toMatchObject({ choices: [], usage: { completion_tokens: 3 } });
  expect(second.events[0].choices[0].delta).toMatchObject({ role: "assistant" });
  expect(second.events.at(-3).choices[0].finish_reason).toBe("stop");
  expect(await ask("capital of France")).toMatchObject({ state: "hit", text: first.words.join("") });
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none" });
  let text = "";
  const chunks = await client.chat.completions.create({
    model: "chat",
    messages: [{ role: "user", content: "capital of France" }],
    temperature: 0,
    stream: true,
  });
  for await (const chunk of chunks) text += chunk.choices[0]?.delta.content ?? "";
  // The official client sends an API key, so it is another caller.
  expect(text).not.toBe(first.words.join(""));
});

const parts = [{ type: "text", text: "capital of France" }];
const tool = { type: "function", function: { name: "f" } };
it.each([
  ["without a temperature", { temperature: undefined }],
  ["with another temperature", { temperature: 0.7 }],
  ["with tools", { tools: [tool] }],
  ["with a structure", { response_format: { type: "json_object" } }],
  ["with a guided text", { guided_choice: ["a"] }],
  ["with several choices", { n: 2 }],
  ["with log probabilities", { logprobs: true }],
  ["that a tool ends", { messages: [{ role: "tool", tool_call_id: "1", content: "capital of France" }] }],
  ["without text", { messages: [{ role: "user", content: " " }] }],
])("lets a chat %s through", async (_, fields) => {
  const { ask, embedded } = await serve();
  await ask("capital of France");
  expect(await ask("capital of France", fields)).toMatchObject({ state: "bypass", similarity: null });
  expect(embedded()).toBe(1);
});

it.each([
  [
    "another system message",
    {
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "capital of France" },
      ],
    },
  ],
  [
    "an earlier turn",
    {
      messages: [
        { role: "user", content: "x" },
        { role: "assistant", content: "y" },
        { role: "user", content: "capital of France" },
      ],
    },
  ],
  ["another limit", { max_tokens: 5 }],
  ["another seed", { seed: 4 }],
  ["other variables of the template", { chat_template_kwargs: { enable_thinking: false } }],
])("%s has answers of its own", async (_, fields) => {
  const { ask } = await serve();
  await ask("capital of France");
  expect(await ask("capital of France", fields)).toMatchObject({ state: "miss", similarity: null });
  expect(await ask("the capital of France", fields)).toMatchObject({ state: "hit" });
});

it("a part of text is the text, and an image is let through", async () => {
  const { ask } = await serve();
  await ask("capital of France");
  expect(await ask(parts)).toMatchObject({ state: "hit" });
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
  expect((await ask([...parts, image])).state ?? "bypass").toBe("bypass");
});

it("callers never share answers: each key, and each value of the namespace's header", async () => {
  const { ask } = await serve({ namespaceHeader: "x-tenant" });
  await ask("capital of France", {}, { authorization: "Bearer one", "x-tenant": "a" });
  for (const headers of [
    {},
    { "x-tenant": "a" },
    { authorization: "Bearer two", "x-tenant": "a" },
    { authorization: "Bearer one", "x-tenant": "b" },
  ]) {
    expect(await ask("capital of France", {}, headers as Record<string, string>)).toMatchObject({
      state: "miss",
      similarity: null,
    });
  }
  const same = { authorization: "Bearer one", "x-tenant": "a" };
  expect(await ask("capital of France", {}, same)).toMatchObject({ state: "hit" });
});

it("an answer is dropped after its time, and the least used one when there are too many", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  const { ask } = await serve({ ttlSeconds: 10, maxEntries: 2 });
  await ask("capital of France");
  vi.advanceTimersByTime(9_999);
  expect(await ask("capital of France")).toMatchObject({ state: "hit" });
  vi.advanceTimersByTime(2);
  expect(await ask("capital of France")).toMatchObject({ state: "miss", similarity: null });
  await ask("capital of Spain");
  await ask("capital of France");
  await ask("highest mountain");
  expect(await ask("capital of France")).toMatchObject({ state: "hit" });
  expect(await ask("capital of Spain")).toMatchObject({ state: "miss" });
});

it("an answer that is larger than the cache is not kept, and the bytes bound the others", async () => {
  const long = await serve({ maxBytes: 2000 }, () => say("x".repeat(5000)));
  await long.ask("capital of France");
  expect(await long.ask("capital of France")).toMatchObject({ state: "miss", similarity: null });
  const two = await serve({ maxBytes: 2000 });
  for (const country of ["France", "Spain", "Italy"]) await two.ask(`capital of ${country}`);
  expect(await two.ask("capital of Italy")).toMatchObject({ state: "hit" });
  expect((await two.ask("capital of France")).state).toBe("miss");
});

it("a new version of the model has no answers yet", async () => {
  const { ask, triton, chat } = await serve();
  await ask("capital of France");
  await chat.unbind();
  bindText(triton, "chat", () => say("new"));
  expect(await ask("capital of France")).toMatchObject({ state: "miss", similarity: null, text: "new" });
});

it("a failing embedding never fails a chat", async () => {
  const warnings: string[] = [];
  const { ask } = await serve({}, undefined, warnings);
  expect(await ask("no embedding")).toMatchObject({ state: "bypass", status: 200 });
  await ask("no embedding");
  const other = await serve({ model: "none" }, undefined, warnings);
  expect(await other.ask("capital of France")).toMatchObject({ state: "bypass", status: 200 });
  expect(warnings.filter((text) => text.includes("without the semantic cache"))).toEqual([
    expect.stringContaining("the embedding failed"),
    expect.stringContaining("Unknown model: none"),
  ]);
});

it("an error of the model is not kept, nor is an answer that its client left", async () => {
  let fails = true;
  const { ask, url, body } = await serve({}, function* () {
    yield { text: "one " };
    if (fails) throw new Error("the model failed");
    yield { text: "two", reason: "stop" };
  });
  const response = await post(`${url}/v1/chat/completions`, body("capital of France", { stream: true }));
  expect((await eventsOf(response)).at(-1)).toMatchObject({ error: {} });
  fails = false;
  expect(await ask("capital of France")).toMatchObject({ state: "miss", similarity: null, text: "one two" });
  expect(await ask("capital of France", { model: "none" })).toMatchObject({ status: 404, state: null });
});

describe("options", () => {
  it.each([
    [{ model: "" }, /semanticCache.model: expected the name of a model, got none/],
    [{ threshold: 1.5 }, /semanticCache.threshold: expected a number above 0 to 1, got 1.5/],
    [{ ttlSeconds: 0 }, /semanticCache.ttlSeconds: expected a number above 0, got 0/],
    [{ maxEntries: 0.5 }, /semanticCache.maxEntries: expected a number from 1 to 100000, whole, got 0.5/],
    [{ maxBytes: 0.5 }, /semanticCache.maxBytes: expected a number of at least 1, got 0.5/],
    [{ maxTemperature: 3 }, /semanticCache.maxTemperature: expected a number from 0 to 2, got 3/],
    [{ size: 3 }, /unknown option 'size'/],
  ])("refuses %o", (options, expected) => {
    const triton = newTriton();
    const semanticCache = { model: "embed", ...options };
    expect(() => openAiFetchHandler(triton, { semanticCache })).toThrow(expected);
  });

  it("is off unless given, and holds for the models and temperatures that it names", async () => {
    const triton = newTriton();
    bindText(triton, "chat", () => say("Hello"));
    const url = await serveOpenAi(triton);
    const message = { model: "chat", messages: [{ role: "user", content: "x" }], temperature: 0 };
    const response = await post(`${url}/v1/chat/completions`, message);
    expect(response.headers.has("x-semantic-cache")).toBe(false);
    const others = await serve({ models: ["other"] });
    expect(await others.ask("capital of France")).toMatchObject({ state: "bypass" });
    const warm = await serve({ maxTemperature: 1 });
    await warm.ask("capital of France", { temperature: undefined });
    expect(await warm.ask("capital of France", { temperature: undefined })).toMatchObject({ state: "hit" });
  });
});
