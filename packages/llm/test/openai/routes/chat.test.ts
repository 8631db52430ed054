import { TritonError } from "@tritonjs/core";
import { describe, expect, it } from "vitest";
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
