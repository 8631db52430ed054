import { Triton, TritonError } from "@tritonjs/core";
import { textEmbedder, textGenerator } from "@tritonjs/llm";
import { openAiFetchHandler } from "@tritonjs/llm/openai";
import { afterAll, expect, it } from "vitest";

const triton = new Triton();
triton.bind({
  modelName: "writer",
  inferFunc: textGenerator(async function* ({ messages, prompt, tools }) {
    if (prompt === "fail") throw new TritonError("INVALID_ARG", "too long");
    if (tools !== undefined) {
      yield { toolCall: { name: "clock", id: "c1" } };
      yield { toolCall: { arguments: '{"zone":"UTC"}' } };
    } else {
      yield* ["Hello ", `${messages?.length ?? prompt}`, ". Bye"];
    }
    yield { usage: { promptTokens: 7, completionTokens: 4 } };
  }),
});
triton.bind({
  modelName: "lengths",
  inferFunc: textEmbedder((texts) => texts.map(({ length }) => [length])),
});
const handler = openAiFetchHandler(triton);
afterAll(() => triton.close());

async function post(path: string, body: object) {
  const init = {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  };
  const answer = await handler(new Request(`http://localhost/v1/${path}`, init));
  return { status: answer.status, text: await answer.text() };
}

const chat = { model: "writer", messages: [{ role: "user", content: "hi" }] };

it("a text generator answers chat completions, whole and as a stream, with usage and stop strings", async () => {
  const stopped = JSON.parse((await post("chat/completions", { ...chat, stop: "." })).text);
  expect(stopped.choices[0]).toMatchObject({ message: { content: "Hello 1" }, finish_reason: "stop" });
  const whole = JSON.parse((await post("chat/completions", chat)).text);
  expect(whole.usage).toMatchObject({ prompt_tokens: 7 });
  const { text } = await post("chat/completions", { ...chat, stream: true });
  const chunks = text
    .split("\n\n")
    .filter((event) => event.startsWith("data: {"))
    .map((event) => JSON.parse(event.slice("data: ".length)));
  const deltas = chunks.map(({ choices }) => choices[0]?.delta.content ?? "");
  expect(deltas.join("")).toBe("Hello 1. Bye");
});

it("a text generator's calls of tools become tool_calls", async () => {
  const tools = [{ type: "function", function: { name: "clock", parameters: { type: "object" } } }];
  const { choices } = JSON.parse((await post("chat/completions", { ...chat, tools })).text);
  expect(choices[0]).toMatchObject({
    finish_reason: "tool_calls",
    message: { tool_calls: [{ id: "c1", function: { name: "clock", arguments: '{"zone":"UTC"}' } }] },
  });
});

it("an error of a text generator has its status and its message", async () => {
  const { status, text } = await post("completions", { model: "writer", prompt: "fail" });
  expect([status, JSON.parse(text).error.message]).toEqual([400, expect.stringContaining("too long")]);
});

it("a text embedder answers embeddings", async () => {
  const body = { model: "lengths", input: ["a", "abc"], encoding_format: "float" };
  const { data } = JSON.parse((await post("embeddings", body)).text);
  expect(data.map(({ embedding }: { embedding: number[] }) => embedding)).toEqual([[1], [3]]);
});
