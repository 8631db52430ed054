import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { OpenAiOptions } from "../../../src/openai/index.js";
import {
  type Asked,
  bindText,
  eventsOf,
  newTriton,
  post,
  type Said,
  say,
  serveOpenAi,
} from "../support/openai-server.js";

const TEMPLATES = {
  /** The prompt ends within the reasoning, as for Qwen 3 Thinking. */
  thinks:
    "{% for m in messages %}{{ m.content }}{% endfor %}{% if tools %}<tool_call>{% endif %}" +
    "{% if add_generation_prompt %}<think>\n{% endif %}",
  /** The model begins the reasoning itself, as for Qwen 3. */
  may: "{% for m in messages %}{{ m.content.split('</think>')[-1] }}{% endfor %}<think></think>\n<|im|>",
  channels: "{% for m in messages %}<|channel|>functions.x{{ m.content }}{% endfor %}",
  command: "{% for m in messages %}<|START_THINKING|>{{ m.content }}{% endfor %}",
};
const directories: Record<string, string> = {};
let root = "";
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "reasoning-"));
  for (const [name, chat_template] of Object.entries(TEMPLATES)) {
    directories[name] = await mkdtemp(join(root, name));
    await writeFile(join(directories[name], "tokenizer_config.json"), JSON.stringify({ chat_template }));
  }
});
afterAll(() => rm(root, { recursive: true }));

const tools = [{ type: "function", function: { name: "weather", parameters: { type: "object" } } }];

async function serve(
  template: keyof typeof TEMPLATES,
  answer: () => Generator<Said>,
  options: OpenAiOptions = {},
) {
  const triton = newTriton();
  const asked: Asked[] = [];
  const inputs = ["text_input", "sampling_parameters", "stream"];
  const record = (one: Asked) => {
    asked.push(one);
    return answer();
  };
  bindText(triton, "m", record, inputs);
  const url = await serveOpenAi(triton, { chatTemplates: { m: directories[template]! }, ...options });
  const body = { model: "m", messages: [{ role: "user", content: "Hello" }] };
  return {
    asked,
    chat: (fields: object) => post(`${url}/v1/chat/completions`, { ...body, ...fields }),
    respond: (fields: object) => post(`${url}/v1/responses`, { model: "m", input: "Hello", ...fields }),
  };
}

async function messageOf(response: Response): Promise<object> {
  return ((await response.json()) as { choices: [{ message: object }] }).choices[0].message;
}

const thinking = () => say("I th", "ink.\n</th", "ink>\n\nHel", "lo");

it("puts reasoning that the prompt began into reasoning_content, whole and streamed", async () => {
  const { chat } = await serve("thinks", thinking);
  const message = await messageOf(await chat({}));
  expect(message).toMatchObject({ reasoning_content: "I think.", content: "Hello" });
  const events = await eventsOf(await chat({ stream: true }));
  const deltas = events.flatMap(
    (event) => event.choices?.map((choice: { delta: object }) => choice.delta) ?? [],
  );
  expect(deltas.filter((delta) => delta.content !== "" && Object.keys(delta).length > 0)).toEqual([
    { reasoning_content: "I th" },
    { reasoning_content: "ink." },
    { content: "Hel" },
    { content: "lo" },
  ]);
});

it("finds reasoning that the model begins itself, and takes any other text as content", async () => {
  const began = await serve("may", () => say("<thi", "nk>\nI think.</think>Hello"));
  expect(await messageOf(await began.chat({}))).toMatchObject({
    reasoning_content: "I think.",
    content: "Hello",
  });
  const plain = await serve("may", () => say("Hello <think> x"));
  const message = await messageOf(await plain.chat({}));
  expect(message).toMatchObject({ content: "Hello <think> x" });
  expect(message).not.toHaveProperty("reasoning_content");
});

it("finds calls after the reasoning, and none within it", async () => {
  const call = '<tool_call>{"name": "weather", "arguments": {}}</tool_call>';
  const { chat } = await serve("thinks", () => say(`Should I ${call}?</think>${call}`));
  expect(await (await chat({ tools })).json()).toMatchObject({
    choices: [
      {
        finish_reason: "tool_calls",
        message: {
          reasoning_content: `Should I ${call}?`,
          content: null,
          tool_calls: [{ function: { name: "weather", arguments: "{}" } }],
        },
      },
    ],
  });
});

it("reads the channels of harmony, with and without tools", async () => {
  const text =
    "<|channel|>analysis<|message|>I think.<|end|><|start|>assistant<|channel|>final<|message|>Hello<|return|>";
  const { chat, asked } = await serve("channels", () => say(...text.match(/.{1,7}/gs)!));
  const expected = { reasoning_content: "I think.", content: "Hello" };
  expect(await messageOf(await chat({}))).toMatchObject(expected);
  expect(asked[0]!.sampling).toMatchObject({ skip_special_tokens: false });
  expect(await messageOf(await chat({ tools }))).toMatchObject(expected);
});

it("leaves out the marks around the answer", async () => {
  const text = "<|START_THINKING|>I think.<|END_THINKING|><|START_RESPONSE|>Hello<|END_RESPONSE|>";
  const { chat } = await serve("command", () => say(...text.match(/.{1,5}/gs)!));
  expect(await messageOf(await chat({}))).toMatchObject({ reasoning_content: "I think.", content: "Hello" });
});

it("leaves reasoning in the content by option, and drops it if the client wants none", async () => {
  const { chat } = await serve("thinks", thinking, { reasoningContent: false });
  expect(await messageOf(await chat({}))).toMatchObject({ content: "I think.\n</think>\n\nHello" });
  const separate = await serve("thinks", thinking);
  const message = await messageOf(await separate.chat({ include_reasoning: false }));
  expect(message).toMatchObject({ content: "Hello" });
  expect(message).not.toHaveProperty("reasoning_content");
});

it("takes a text of a given structure as content, even if the prompt began reasoning", async () => {
  const { chat } = await serve("thinks", () => say('{"a": 1}'));
  const response_format = { type: "json_object" };
  expect(await messageOf(await chat({ response_format }))).toMatchObject({ content: '{"a": 1}' });
});

it("makes reasoning an item of its own in responses", async () => {
  const { respond } = await serve("thinks", thinking);
  expect(await (await respond({})).json()).toMatchObject({
    output: [
      { type: "reasoning", content: [{ type: "reasoning_text", text: "I think." }] },
      { type: "message", content: [{ text: "Hello" }] },
    ],
  });
  const events = await eventsOf(await respond({ stream: true }));
  expect(events.map(({ type }) => type)).toEqual([
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.reasoning_text.delta",
    "response.reasoning_text.delta",
    "response.reasoning_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
  ]);
  expect(events.at(-1).response.output).toMatchObject([{ type: "reasoning" }, { type: "message" }]);
});
