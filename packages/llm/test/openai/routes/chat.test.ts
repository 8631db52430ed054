import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TritonError } from "@tritonjs/core";
import type { BytesArray } from "@tritonjs/core/types";
import { textGeneration } from "@tritonjs/llm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ChatTemplates } from "../../../src/openai/chat-templates.js";
import type { OpenAiOptions } from "../../../src/openai/index.js";
import { STORIES } from "../../support/stories.js";
import {
  type Asked,
  bindText,
  eventsOf,
  newTriton,
  post,
  say,
  serveOpenAi,
  signalOf,
} from "../support/openai-server.js";

const messages = [{ role: "user", content: "Hello" }];

/** A server with one model `m`, and what the model was asked for. */
async function serve(answer: Parameters<typeof bindText>[2], inputs?: readonly string[]) {
  const triton = newTriton();
  const asked: Asked[] = [];
  bindText(
    triton,
    "m",
    (one) => {
      asked.push(one);
      return answer(one);
    },
    inputs,
  );
  const url = await serveOpenAi(triton);
  const chat = (body: object, init?: RequestInit) =>
    post(`${url}/v1/chat/completions`, { model: "m", messages, ...body }, init);
  return { url, asked, chat, triton };
}

describe("POST /v1/chat/completions", () => {
  it("answers with OpenAI's object", async () => {
    const { chat, asked } = await serve(() => say("Good ", "day"));
    const response = await chat({
      temperature: 0.5,
      stop: "x",
      max_completion_tokens: 7,
      max_tokens: 5,
      user: "u",
    });
    expect(response.status).toBe(200);
    expect(response.headers.get("x-request-id")).toMatch(/^req_[0-9a-f]{32}$/);
    expect(await response.json()).toEqual({
      id: expect.stringMatching(/^chatcmpl-/),
      object: "chat.completion",
      created: expect.any(Number),
      model: "m",
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: "Good day", refusal: null },
          logprobs: null,
          finish_reason: "stop",
        },
      ],
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
      system_fingerprint: null,
    });
    expect(asked).toMatchObject([
      { messages, stream: false, sampling: { temperature: 0.5, stop: ["x"], max_tokens: 7 } },
    ]);
  });

  it("passes the variables of the chat template on to a model that renders messages itself", async () => {
    const { chat, asked } = await serve(() => say("Good day"));
    const variables = { enable_thinking: false };
    await chat({ chat_template_kwargs: variables, add_generation_prompt: false });
    await chat({});
    expect(asked.map(({ sampling }) => sampling)).toEqual([
      { chat_template_kwargs: variables, add_generation_prompt: false },
      {},
    ]);
  });

  it("names the field of an error that the model finds", async () => {
    const { chat } = await serve(() => {
      const text = "sampling parameter 'min_p': expected a number from 0 to 1, got 2";
      throw new TritonError("INVALID_ARG", text, { reason: "INVALID_INPUT" });
    });
    const response = await chat({});
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { param: "min_p", code: "invalid_input" } });
  });

  it("streams chunks: the role first, and the usage last if the client asks for it", async () => {
    const { chat } = await serve(() => say("Good ", "day"));
    const response = await chat({ stream: true, stream_options: { include_usage: true } });
    expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    const events = await eventsOf(response);
    const { id, created } = events[0];
    const frame = { id, object: "chat.completion.chunk", created, model: "m", system_fingerprint: null };
    const chunk = (delta: object, finish_reason: string | null = null) => ({
      ...frame,
      choices: [{ index: 0, delta, logprobs: null, finish_reason }],
      usage: null,
    });
    expect(events).toEqual([
      chunk({ role: "assistant", content: "", refusal: null }),
      chunk({ content: "Good " }),
      chunk({ content: "day" }),
      chunk({}, "stop"),
      { ...frame, choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } },
      "[DONE]",
    ]);
  });

  it("makes n choices side by side, with seeds in a row", async () => {
    const { chat, asked } = await serve(({ sampling }) => say(`seed ${sampling.seed}`));
    const whole = (await (await chat({ n: 3, seed: 40 })).json()) as {
      choices: { message: { content: string } }[];
    };
    expect(whole.choices.map(({ message }) => message.content)).toEqual(["seed 40", "seed 41", "seed 42"]);
    expect(whole).toMatchObject({ usage: { prompt_tokens: 3, completion_tokens: 3 } });
    expect(asked.map(({ sampling }) => sampling.seed).sort()).toEqual([40, 41, 42]);
    const events = await eventsOf(await chat({ n: 2, seed: 1, stream: true }));
    const texts = ["", ""];
    for (const { choices } of events.slice(0, -1)) {
      for (const { index, delta } of choices) texts[index] += delta.content ?? "";
    }
    expect(texts).toEqual(["seed 1", "seed 2"]);
    expect(events.filter((event) => event.choices?.[0]?.finish_reason === "stop")).toHaveLength(2);
  });

  it("says length when the model ran into max_tokens", async () => {
    const { chat } = await serve(function* () {
      yield { text: "a" };
      yield { text: "b", reason: "length" };
    });
    expect(await (await chat({})).json()).toMatchObject({ choices: [{ finish_reason: "length" }] });
    expect((await eventsOf(await chat({ stream: true }))).at(-2)).toMatchObject({
      choices: [{ delta: {}, finish_reason: "length" }],
    });
  });

  it("converts logprobs, with the chosen token first whatever its number", async () => {
    const token = (decoded_token: string, logprob: number, rank: number) => ({
      logprob,
      rank,
      decoded_token,
    });
    const first = `{"77":${JSON.stringify(token("é", -1.5, 2))},"5":${JSON.stringify(token('{"6":', -0.5, 1))}}`;
    const { chat, asked } = await serve(function* () {
      yield { text: "é", logprobs: `[${first}]`, reason: "stop" };
    });
    const whole = (await (await chat({ logprobs: true, top_logprobs: 1 })).json()) as { choices: object[] };
    expect(whole.choices[0]).toMatchObject({
      logprobs: {
        content: [
          {
            token: "é",
            logprob: -1.5,
            bytes: [195, 169],
            top_logprobs: [{ token: '{"6":', logprob: -0.5, bytes: [123, 34, 54, 34, 58] }],
          },
        ],
        refusal: null,
      },
    });
    expect(asked[0]!.sampling).toMatchObject({ logprobs: 1 });
    const events = await eventsOf(await chat({ logprobs: true, stream: true }));
    expect(events[1].choices[0].logprobs.content[0]).toMatchObject({ token: "é", top_logprobs: [] });
  });

  it("never splits a character between two chunks", async () => {
    const [first, second] = [Buffer.from("ü").subarray(0, 1), Buffer.from("ü").subarray(1)];
    const { chat } = await serve(function* () {
      yield { bytes: first };
      yield { bytes: second };
    });
    const events = await eventsOf(await chat({ stream: true }));
    const texts = events.slice(0, -1).map((event) => event.choices[0].delta.content ?? "");
    expect(texts.filter((text: string) => text !== "")).toEqual(["ü"]);
  });

  it("passes tools on, and the calls that the model makes back", async () => {
    const tool = { type: "function", function: { name: "weather", parameters: { type: "object" } } };
    const { chat, asked } = await serve(function* () {
      yield {
        tools: [{ index: 0, id: "c1", type: "function", function: { name: "weather", arguments: '{"a"' } }],
      };
      yield { tools: [{ index: 0, function: { arguments: ":1}" } }], reason: "stop" };
    });
    const whole = await (await chat({ tools: [tool], tool_choice: "auto" })).json();
    const call = { id: "c1", type: "function", function: { name: "weather", arguments: '{"a":1}' } };
    expect(whole).toMatchObject({
      choices: [
        { message: { role: "assistant", content: null, tool_calls: [call] }, finish_reason: "tool_calls" },
      ],
    });
    expect(asked[0]).toMatchObject({
      tools: [tool],
      sampling: { tool_choice: "auto", parallel_tool_calls: true },
    });
    const events = await eventsOf(await chat({ tools: [tool], stream: true }));
    expect(events.slice(1, -1).map((event) => event.choices[0].delta)).toEqual([
      { tool_calls: [{ ...call, index: 0, function: { name: "weather", arguments: '{"a"' } }] },
      { tool_calls: [{ index: 0, function: { arguments: ":1}" } }] },
      {},
    ]);
    await chat({ tools: [tool], tool_choice: "none" });
    expect(asked[2]!.tools).toBeNull();
  });
});

describe("a client that leaves", () => {
  it("ends all choices at once", async () => {
    const aborted: (() => void)[] = [];
    const ends = [0, 1].map(() => new Promise<void>((resolve) => aborted.push(resolve)));
    const { chat } = await serve(async function* ({ signal }) {
      signal.addEventListener("abort", () => aborted.pop()?.());
      yield { text: "first" };
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    });
    const left = new AbortController();
    const response = await chat({ n: 2, stream: true }, { signal: left.signal });
    await response.body!.getReader().read();
    left.abort();
    await Promise.all(ends);
  });

  it("ends a generation that is not streamed", async () => {
    const begun = signalOf();
    const ended = signalOf();
    const { chat } = await serve(async function* ({ signal }) {
      begun.reach();
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      ended.reach();
      yield {};
    });
    const left = new AbortController();
    const answer = chat({}, { signal: left.signal });
    await begun.reached;
    left.abort();
    await expect(answer).rejects.toThrow();
    await ended.reached;
  });
});

describe("a model that fails", () => {
  it("has a status of its own before the first token, and an event after it", async () => {
    let words = 0;
    const { chat } = await serve(async function* () {
      for (let i = 0; i < words; i++) yield { text: `${i} ` };
      throw new Error("out of memory");
    });
    const error = expect.objectContaining({ type: "server_error", param: null });
    const early = await chat({ stream: true });
    expect(early.status).toBe(500);
    expect(await early.json()).toEqual({ error, detail: expect.stringContaining("out of memory") });
    words = 10;
    const late = await chat({ stream: true });
    expect(late.status).toBe(200);
    const events = await eventsOf(late);
    expect(events).toHaveLength(12);
    expect(events.at(-1)).toEqual({ error });
    expect(events.at(-1).error.message).toContain("out of memory");
    const whole = await chat({});
    expect(whole.status).toBe(500);
    expect(await whole.json()).toMatchObject({ error });
  });
});

describe("chat templates", () => {
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
        return (answer as { choices: { message: { tool_calls: unknown[] } }[] }).choices[0]!.message
          .tool_calls;
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
});

const tools = ["weather", "time"].map((name) => ({
  type: "function",
  function: {
    name,
    parameters: {
      type: "object",
      properties: { city: { enum: ["Ulm", "Rom"] } },
      required: ["city"],
      additionalProperties: false,
    },
  },
}));

describe("chats with a decoder", () => {
  it("a decoder is held to calls and schemas, and refuses tools that its template does not know", async () => {
    const triton = newTriton();
    const stories = triton.bind({
      modelName: "stories",
      inferFunc: textGeneration({ directory: STORIES, intraOpNumThreads: 1 }),
    });
    const url = await serveOpenAi(triton);
    const messages = [{ role: "user", content: "Tell me about a dog." }];
    // The small model writes white space wherever JSON has it.
    const spaces = [...Array(33).keys()].flatMap((id) => [[String(id), -100]]);
    const body = {
      model: "stories",
      messages,
      tools,
      max_tokens: 300,
      logit_bias: Object.fromEntries(spaces),
    };
    const chat = (fields: object) => post(`${url}/v1/chat/completions`, { ...body, ...fields });

    const named = await (
      await chat({ tool_choice: { type: "function", function: { name: "time" } } })
    ).json();
    expect(named).toMatchObject({
      choices: [{ message: { content: null, tool_calls: [{ function: { name: "time" } }] } }],
    });
    const events = await eventsOf(await chat({ tool_choice: "required", stream: true }));
    const calls = events.flatMap((event) => event.choices?.[0]?.delta.tool_calls ?? []);
    expect(["weather", "time"]).toContain(calls[0].function.name);
    const texts = events.map((event) => event.choices?.[0]?.delta.content ?? "");
    expect(texts.join("")).toBe("");

    const schema = tools[0]!.function.parameters;
    const response_format = { type: "json_object", schema };
    const isCity = expect.stringMatching(/^\{\s*"city"\s*:\s*"(Ulm|Rom)"\s*\}$/);
    const held = await (await chat({ tools: [], response_format })).json();
    expect(held).toMatchObject({ choices: [{ message: { content: isCity } }] });
    const { logit_bias } = body;
    const tool_choice = { type: "function", function: { name: "time" } };
    for (const demand of [{ tool_choice }, { response_format }]) {
      const sampling_parameters = [JSON.stringify({ ...demand, logit_bias, max_tokens: 300 })];
      const inputs = {
        messages: [JSON.stringify(messages)],
        tools: [JSON.stringify(tools)],
        sampling_parameters,
      };
      for await (const { text_output } of stories.stream(inputs)) {
        expect((text_output as BytesArray).text()).toEqual(isCity);
      }
    }

    const auto = await chat({});
    expect(auto.status).toBe(400);
    expect(await auto.json()).toMatchObject({ error: { param: "tools", code: "unsupported_parameter" } });
    expect((await chat({ tool_choice: "none", max_tokens: 2 })).status).toBe(200);
  });
});
