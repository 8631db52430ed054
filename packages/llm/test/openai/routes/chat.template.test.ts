import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ChatTemplates } from "../../../src/openai/chat-templates.js";
import type { OpenAiOptions } from "../../../src/openai/index.js";
import {
  type Asked,
  bindText,
  eventsOf,
  newTriton,
  post,
  say,
  serveOpenAi,
} from "../support/openai-server.js";

/** A template with the marks of the family `hermes`. */
const TEMPLATE =
  "{% for message in messages %}<{{ message.role }}>{{ message.content }}\n{% endfor %}" +
  "{% if tools %}tools: {% for tool in tools %}{{ tool.function.name }} {% endfor %}<tool_call>\n{% endif %}" +
  "{% if add_generation_prompt %}<assistant>{% endif %}";

let directory = "";
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "openai-template-"));
  await writeFile(join(directory, "tokenizer_config.json"), JSON.stringify({ chat_template: TEMPLATE }));
});
afterAll(() => rm(directory, { recursive: true }));

const INPUTS = ["text_input", "sampling_parameters", "stream"];
const messages = [
  { role: "developer", content: "Be brief." },
  { role: "user", content: [{ type: "text", text: "Hello" }] },
];
const tool = (name: string) => ({
  type: "function",
  function: { name, parameters: { type: "object", properties: { city: { type: "string" } } } },
});

async function serve(answer: Parameters<typeof bindText>[2], options: OpenAiOptions = {}) {
  const triton = newTriton();
  const asked: Asked[] = [];
  const record = (one: Asked) => {
    asked.push(one);
    return answer(one);
  };
  bindText(triton, "m", record, INPUTS);
  const url = await serveOpenAi(triton, { chatTemplates: { m: directory }, ...options });
  const chat = (body: object) => post(`${url}/v1/chat/completions`, { model: "m", messages, ...body });
  return { asked, chat };
}

describe("a chat with a model that takes a prompt", () => {
  it("goes through the template", async () => {
    const { chat, asked } = await serve(() => say("Hi"));
    expect(await (await chat({})).json()).toMatchObject({ choices: [{ message: { content: "Hi" } }] });
    expect(asked[0]!.prompt).toBe("<system>Be brief.\n<user>Hello\n<assistant>");
    const image = [{ role: "user", content: [{ type: "image_url", image_url: { url: "data:" } }] }];
    const refused = await chat({ messages: image });
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ error: { param: "messages[0].content[0]" } });
  });

  it("reads the calls of tools out of the text, also over several responses", async () => {
    const { chat, asked } = await serve(() =>
      say("Let me see. <tool", '_call>{"name": "weather", "argum', 'ents": {"city": "Ulm"}}</tool_call>'),
    );
    const body = { tools: [tool("weather")] };
    const whole = await (await chat(body)).json();
    const call = { id: expect.stringMatching(/^call_/), type: "function" };
    expect(whole).toMatchObject({
      choices: [
        {
          message: {
            content: expect.stringContaining("Let me see."),
            tool_calls: [{ ...call, function: { name: "weather", arguments: '{"city": "Ulm"}' } }],
          },
          finish_reason: "tool_calls",
        },
      ],
    });
    expect(asked[0]!.prompt).toContain("tools: weather");
    const events = await eventsOf(await chat({ ...body, stream: true }));
    const calls = events.slice(0, -1).flatMap(({ choices }) => choices[0].delta.tool_calls ?? []);
    expect(calls[0]).toMatchObject({ index: 0, ...call, function: { name: "weather" } });
    expect(calls.map((one) => one.function.arguments ?? "").join("")).toBe('{"city": "Ulm"}');
    expect(events.at(-2)).toMatchObject({ choices: [{ finish_reason: "tool_calls" }] });
  });

  it("has at most one call with parallel_tool_calls false", async () => {
    const call = '<tool_call>{"name": "weather", "arguments": {}}</tool_call>';
    const { chat } = await serve(() => say(call, call));
    const calls = async (parallel_tool_calls: boolean) => {
      const answer = await (await chat({ tools: [tool("weather")], parallel_tool_calls })).json();
      return (answer as { choices: { message: { tool_calls: unknown[] } }[] }).choices[0]!.message.tool_calls;
    };
    expect(await calls(true)).toHaveLength(2);
    expect(await calls(false)).toHaveLength(1);
  });

  it("constrains the model to the arguments of a named tool", async () => {
    const { chat, asked } = await serve(() => say('{"city"', ': "Ulm"}'));
    const tools = [tool("weather"), tool("time")];
    const whole = await (
      await chat({ tools, tool_choice: { type: "function", function: { name: "time" } } })
    ).json();
    expect(whole).toMatchObject({
      choices: [
        {
          message: {
            content: null,
            tool_calls: [{ function: { name: "time", arguments: '{"city": "Ulm"}' } }],
          },
          finish_reason: "stop",
        },
      ],
    });
    const { structured_outputs, ...others } = asked[0]!.sampling;
    expect(JSON.parse(structured_outputs as string)).toEqual({ json: tools[1]!.function.parameters });
    expect(others).not.toHaveProperty("response_format");
  });

  it("constrains the model to an array of calls if one is required", async () => {
    const { chat, asked } = await serve(() => say('[{"name":"time","argu', 'ments":{"city":"Ulm"}}]'));
    const body = {
      tools: [tool("weather"), tool("time")],
      tool_choice: "required",
      parallel_tool_calls: false,
    };
    const events = await eventsOf(await chat({ ...body, stream: true }));
    const calls = events.flatMap((event) => event.choices?.[0]?.delta.tool_calls ?? []);
    expect(calls[0]).toMatchObject({ index: 0, type: "function", function: { name: "time" } });
    expect(calls.map((call) => call.function.arguments).join("")).toBe('{"city":"Ulm"}');
    expect(JSON.parse(asked[0]!.sampling.structured_outputs as string)).toMatchObject({
      json: { type: "array", minItems: 1, maxItems: 1, items: { anyOf: [{}, {}] } },
    });
  });

  it.each(["[ ", '[{"na', '[{"name":"time"'])(
    "leaves the beginning %s of a required call that was cut off out of the content",
    async (text) => {
      const { chat } = await serve(() => say(text));
      const body = { tools: [tool("time")], tool_choice: "required" };
      const whole = await (await chat(body)).json();
      expect(whole).toMatchObject({ choices: [{ message: { content: "" } }] });
      const events = await eventsOf(await chat({ ...body, stream: true }));
      expect(events.map((event) => event.choices?.[0]?.delta.content ?? "").join("")).toBe("");
    },
  );

  it("shows the text of a model that does not call the tool that is required", async () => {
    const { chat } = await serve(() => say("I can", "not."));
    const whole = await (await chat({ tools: [tool("time")], tool_choice: "required" })).json();
    expect(whole).toMatchObject({ choices: [{ message: { content: "I cannot." } }] });
  });

  it("says which directory has no template", async () => {
    const { chat } = await serve(() => say("Hi"), { chatTemplates: { m: join(directory, "none") } });
    const refused = await chat({});
    expect(refused.status).toBe(500);
    expect(await refused.json()).toMatchObject({
      error: { message: expect.stringContaining("tokenizer_config.json") },
    });
  });

  it("parses a broken template once, and reads a missing one again", async () => {
    const folder = join(directory, "broken");
    await mkdir(folder);
    const templates = new ChatTemplates({ chatTemplates: { m: folder } });
    const found = () => templates.find({ name: "m" } as never);
    const write = (chat_template: string) =>
      writeFile(join(folder, "tokenizer_config.json"), JSON.stringify({ chat_template }));
    await expect(found()).rejects.toThrow("got none");
    await write("{% if %}");
    const first = await found().catch((error: unknown) => error);
    expect(first).toMatchObject({ message: expect.stringContaining("cannot parse the chat template") });
    await expect(found()).rejects.toBe(first);
  });
});
