import { Triton } from "@tritonjs/core";
import { textGeneration } from "@tritonjs/llm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { STORIES } from "../../support/stories.js";
import {
  type Asked,
  bindText,
  eventsOf,
  newTriton,
  post,
  say,
  serveOpenAi,
} from "../support/openai-server.js";

/** A server with one model `m`, which has the given inputs. */
async function serve(answer: Parameters<typeof bindText>[2], inputs?: readonly string[]) {
  const warnings: string[] = [];
  const triton = newTriton({}, warnings);
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
  const complete = (body: object) => post(`${url}/v1/completions`, { model: "m", prompt: "Once", ...body });
  return { url, asked, complete, warnings };
}

describe("POST /v1/completions", () => {
  it("answers with OpenAI's object, with 16 tokens unless the client says otherwise", async () => {
    const { complete, asked } = await serve(() => say(" upon", " a time"));
    expect(await (await complete({})).json()).toEqual({
      id: expect.stringMatching(/^cmpl-/),
      object: "text_completion",
      created: expect.any(Number),
      model: "m",
      choices: [{ index: 0, text: " upon a time", logprobs: null, finish_reason: "stop" }],
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
      system_fingerprint: null,
    });
    await complete({ max_tokens: 3 });
    expect(asked).toMatchObject([
      { prompt: "Once", sampling: { max_tokens: 16 } },
      { sampling: { max_tokens: 3 } },
    ]);
  });

  it("continues several prompts, and repeats them for echo", async () => {
    const { complete } = await serve(({ prompt }) => say(`/${prompt}`));
    const whole = await (await complete({ prompt: ["a", "b"], n: 2, echo: true })).json();
    const texts = (whole as { choices: { text: string }[] }).choices.map(({ text }) => text);
    expect(texts).toEqual(["a/a", "a/a", "b/b", "b/b"]);
    expect(whole).toMatchObject({ usage: { prompt_tokens: 6, completion_tokens: 4 } });
    const events = await eventsOf(await complete({ prompt: "a", echo: true, stream: true }));
    expect(events.slice(0, -1).map(({ choices }) => choices[0].text)).toEqual(["a", "/a", ""]);
    expect(events.at(-1)).toBe("[DONE]");
  });

  it("has logprobs with offsets that go on from chunk to chunk", async () => {
    const entry = (text: string) =>
      `[{"9":{"logprob":-0.25,"rank":1,"decoded_token":${JSON.stringify(text)}}}]`;
    const { complete } = await serve(function* () {
      yield { text: "ab", logprobs: entry("ab") };
      yield { text: "c", logprobs: entry("c"), reason: "stop" };
    });
    expect(await (await complete({ logprobs: 1 })).json()).toMatchObject({
      choices: [
        {
          logprobs: {
            tokens: ["ab", "c"],
            token_logprobs: [-0.25, -0.25],
            top_logprobs: [{ ab: -0.25 }, { c: -0.25 }],
            text_offset: [0, 2],
          },
        },
      ],
    });
    const events = await eventsOf(await complete({ logprobs: 0, stream: true }));
    expect(events[1].choices[0].logprobs).toEqual({
      tokens: ["c"],
      token_logprobs: [-0.25],
      top_logprobs: null,
      text_offset: [2],
    });
  });

  it("keeps tokens apart that are parts of a character, by their bytes", async () => {
    const part = (id: number, byte: number, top: string) =>
      `"${id}":{"logprob":-0.5,"rank":1,"decoded_token":"\ufffd","bytes":[${byte}]}${top}`;
    const { complete } = await serve(function* () {
      const logprobs = `[{${part(1, 0xe2, `,"2":{"logprob":-1,"rank":2,"decoded_token":"\ufffd","bytes":[195]}`)}},{${part(3, 0x82, "")}},{${part(4, 0xac, "")}},{"5":{"logprob":-2,"rank":1,"decoded_token":"!"}}]`;
      yield { text: "€!", logprobs, reason: "stop" };
    });
    const [choice] = ((await (await complete({ logprobs: 2 })).json()) as { choices: [object] }).choices;
    expect(choice).toMatchObject({
      logprobs: {
        tokens: ["bytes:\\xe2", "bytes:\\x82", "bytes:\\xac", "!"],
        top_logprobs: [
          { "bytes:\\xe2": -0.5, "bytes:\\xc3": -1 },
          { "bytes:\\x82": -0.5 },
          { "bytes:\\xac": -0.5 },
          { "!": -2 },
        ],
        text_offset: [0, 0, 0, 1],
      },
    });
  });

  it("asks an engine that must generate for one token, and leaves it out for max_tokens 0", async () => {
    const { complete, asked } = await serve(() => say(" upon"), ["text_input", "sampling_parameters"]);
    expect(await (await complete({ max_tokens: 0, echo: true })).json()).toMatchObject({
      choices: [{ text: "Once", finish_reason: "length" }],
    });
    expect(asked).toMatchObject([{ sampling: { max_tokens: 1 } }]);
  });

  it("refuses what the model cannot report", async () => {
    const { complete } = await serve(() => say("x"), ["text_input", "sampling_parameters"]);
    for (const [fields, param] of [
      [{ echo: true, logprobs: 1 }, "echo"],
      [{ prompt: [1, 2] }, "prompt"],
      [{ best_of: 2, stream: true }, "best_of"],
    ] as const) {
      const refused = await complete(fields);
      expect([refused.status, await refused.json()]).toMatchObject([400, { error: { param } }]);
    }
  });

  it("ends the text at a stop string itself, if the model has no sampling parameters", async () => {
    const { complete } = await serve(() => say("one E", "N", "D two", " three"), ["text_input", "stream"]);
    expect(await (await complete({ stop: ["END", "two"] })).json()).toMatchObject({
      choices: [{ text: "one ", finish_reason: "stop" }],
    });
    const events = await eventsOf(await complete({ stop: "END", stream: true }));
    expect(events.slice(0, -1).map(({ choices }) => choices[0].text)).toEqual(["one ", ""]);
    expect(await (await complete({ stop: "ENDS", max_tokens: 9 })).json()).toMatchObject({
      choices: [{ text: "one END two three" }],
    });
  });

  it("warns once of fields without effect and of unknown ones", async () => {
    const { complete, warnings } = await serve(() => say("x"), ["text_input"]);
    for (let i = 0; i < 2; i++) {
      expect((await complete({ temperature: 0.3, favourite_colour: "green\nINFO" })).status).toBe(200);
    }
    expect(warnings.filter((text) => text.includes("OpenAI"))).toEqual([
      "OpenAI: /v1/completions ignores the unknown field 'favourite_colour'",
      "OpenAI: 'temperature' has no effect for model 'm', which has no input for it",
      "OpenAI: 'max_tokens' has no effect for model 'm', which has no input for it",
    ]);
  });

  it("logs requests and warnings as the module openai_server", async () => {
    const modules: unknown[] = [];
    const write = (text: string, about?: { readonly module?: string }) => {
      if (text.startsWith("OpenAI")) modules.push(about?.module);
    };
    const logger = { takesSubjects: true as const, error: write, warn: write, info: write, debug: write };
    const triton = newTriton({ logger, logVerbose: 1 });
    bindText(triton, "m", () => say("x"), ["text_input"]);
    const url = await serveOpenAi(triton);
    await post(`${url}/v1/completions`, { model: "m", prompt: "Once", favourite_colour: "green" });
    expect(new Set(modules)).toEqual(new Set(["openai_server"]));
    expect(modules.length).toBeGreaterThan(1);
  });
});

describe("completions of a decoder", () => {
  interface Choice {
    readonly text: string;
    readonly finish_reason: string;
    readonly logprobs: {
      readonly tokens: string[];
      readonly token_logprobs: (number | null)[];
      readonly top_logprobs: (Record<string, number> | null)[];
      readonly text_offset: number[];
    };
  }

  let triton: Triton;
  let url: string;

  beforeAll(async () => {
    triton = new Triton();
    triton.bind({ modelName: "m", inferFunc: textGeneration({ directory: STORIES, intraOpNumThreads: 1 }) });
    url = await serveOpenAi(triton);
  });

  afterAll(() => triton.close());

  function serve() {
    const body = { model: "m", prompt: "Once there was", max_tokens: 8, temperature: 0, logprobs: 2 };
    const send = (fields: object) => post(`${url}/v1/completions`, { ...body, ...fields });
    const complete = async (fields: object) =>
      (await (await send(fields)).json()) as {
        choices: [Choice, ...Choice[]];
        usage: object;
        error?: { param: string };
      };
    return { send, complete };
  }

  it("reports the prompt's log probabilities for echo, equal to those of the same tokens when they were generated", async () => {
    const { complete } = serve();
    const { text, logprobs } = (await complete({})).choices[0];
    const [echoed] = (await complete({ prompt: `Once there was${text}`, echo: true, max_tokens: 0 })).choices;
    expect(echoed).toMatchObject({ text: `Once there was${text}`, finish_reason: "length" });
    const shown = echoed.logprobs;
    const count = logprobs.tokens.length;
    expect(shown.tokens.slice(-count)).toEqual(logprobs.tokens);
    shown.token_logprobs.slice(-count).forEach((value, i) => {
      expect(value).toBeCloseTo(logprobs.token_logprobs[i]!, 3);
    });
    expect([shown.token_logprobs[0], shown.top_logprobs[0]]).toEqual([null, null]);
    // Each token stands where its offset says.
    shown.tokens.forEach((token, i) => {
      const place = echoed.text.slice(shown.text_offset[i], shown.text_offset[i]! + token.length);
      // The token that begins every text is not part of it.
      if (i > 0) expect(place).toBe(token);
    });
  });

  it("answers the requests of lm-evaluation-harness: prompts of text or tokens, echoed with one more token", async () => {
    const { complete, send } = serve();
    const asked = { echo: true, max_tokens: 1, logprobs: 1, seed: 1234 };
    const texts = await complete({ ...asked, prompt: ["Once there was", "One day"] });
    const ids = await complete({
      prompt: "Once there was",
      echo: true,
      max_tokens: 0,
      return_tokens_as_token_ids: true,
    });
    const tokens = ids.choices[0].logprobs.tokens.map((token) => Number(token.replace("token_id:", "")));
    const [ofText, other] = texts.choices;
    const [ofTokens, same] = (await complete({ ...asked, prompt: [tokens, tokens] })).choices;
    expect(ofTokens).toMatchObject({
      text: `<|begin|>${ofText.text}`,
      logprobs: { tokens: ofText.logprobs.tokens },
    });
    expect(same!.logprobs).toEqual(ofTokens.logprobs);
    expect(other!.text.startsWith("One day")).toBe(true);
    expect(ofText.logprobs.tokens).toHaveLength(tokens.length + 1);
    expect(ofText.logprobs.token_logprobs.slice(1).every(Number.isFinite)).toBe(true);
    const chunks = await eventsOf(await send({ ...asked, prompt: tokens, stream: true }));
    const joined = chunks.flatMap(({ choices }) => choices?.[0].logprobs?.tokens ?? []);
    expect(joined).toEqual(ofText.logprobs.tokens);
    expect(chunks.map(({ choices }) => choices?.[0].text ?? "").join("")).toBe(ofTokens.text);
  });

  it("counts a prompt of tokens, and refuses numbers that are not tokens", async () => {
    const { complete } = serve();
    expect(await complete({ prompt: [40, 41], max_tokens: 2 })).toMatchObject({
      usage: { prompt_tokens: 2, completion_tokens: 2 },
    });
    expect((await complete({ prompt: [1_000_000] })).error).toMatchObject({
      message: expect.stringMatching(
        /'input_ids' of model 'm': expected token numbers from 0 to \d+, got 1000000/,
      ),
    });
  });

  it("chooses the most likely of several texts for best_of", async () => {
    const { complete } = serve();
    const sampled = { temperature: 1.5, seed: 7, max_tokens: 6 };
    const all = (await complete({ ...sampled, n: 4 })).choices;
    const mean = ({ logprobs: { token_logprobs: values } }: Choice) =>
      values.reduce<number>((sum, value) => sum + value!, 0) / values.length;
    const best = [...all].sort((a, b) => mean(b) - mean(a)).slice(0, 2);
    const chosen = await complete({ ...sampled, n: 2, best_of: 4 });
    expect(chosen.choices.map(({ text }) => text)).toEqual(best.map(({ text }) => text));
    expect(chosen.usage).toMatchObject({
      completion_tokens: all.flatMap((one) => one.logprobs.tokens).length,
    });
  });

  it("a prompt beyond the context has OpenAI's code and the field of its endpoint", async () => {
    const long = "Once there was a cat. ".repeat(500);
    const code = "context_length_exceeded";
    for (const [path, fields, param] of [
      ["chat/completions", { messages: [{ role: "user", content: long }] }, "messages"],
      ["completions", { prompt: long }, "prompt"],
      ["completions", { prompt: "Once", max_tokens: 5000 }, "max_tokens"],
      ["responses", { input: long }, "input"],
    ] as const) {
      const response = await post(`${url}/v1/${path}`, { model: "m", ...fields });
      expect(response.status).toBe(400);
      const error = { type: "invalid_request_error", code, param };
      expect(await response.json()).toMatchObject({ error });
    }
  });
});

describe("the Responses API", () => {
  async function serve(answer: Parameters<typeof bindText>[2]) {
    const triton = newTriton();
    const asked: Asked[] = [];
    bindText(triton, "m", (one) => {
      asked.push(one);
      return answer(one);
    });
    const url = await serveOpenAi(triton);
    const respond = (body: object) => post(`${url}/v1/responses`, { model: "m", input: "Hello", ...body });
    return { asked, respond };
  }

  describe("POST /v1/responses", () => {
    it("answers with OpenAI's object", async () => {
      const { respond, asked } = await serve(() => say("Good ", "day"));
      const response = await (await respond({ instructions: "Be brief.", max_output_tokens: 9 })).json();
      expect(response).toMatchObject({
        id: expect.stringMatching(/^resp_/),
        object: "response",
        status: "completed",
        error: null,
        incomplete_details: null,
        instructions: "Be brief.",
        max_output_tokens: 9,
        model: "m",
        output: [
          {
            id: expect.stringMatching(/^msg_/),
            type: "message",
            status: "completed",
            role: "assistant",
            content: [{ type: "output_text", text: "Good day", annotations: [], logprobs: [] }],
          },
        ],
        parallel_tool_calls: true,
        text: { format: { type: "text" } },
        tool_choice: "auto",
        tools: [],
        usage: {
          input_tokens: 3,
          input_tokens_details: { cached_tokens: 0 },
          output_tokens: 2,
          output_tokens_details: { reasoning_tokens: 0 },
          total_tokens: 5,
        },
      });
      expect(asked[0]).toMatchObject({
        messages: [
          { role: "system", content: "Be brief." },
          { role: "user", content: "Hello" },
        ],
        sampling: { max_tokens: 9 },
      });
    });

    it("takes messages, calls and their results as input", async () => {
      const { respond, asked } = await serve(() => say("ok"));
      const input = [
        { role: "user", content: [{ type: "input_text", text: "Weather?" }] },
        { type: "function_call", call_id: "c1", name: "weather", arguments: "{}" },
        { type: "function_call_output", call_id: "c1", output: "rain" },
      ];
      expect((await respond({ input })).status).toBe(200);
      expect(asked[0]!.messages).toEqual([
        { role: "user", content: "Weather?" },
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "c1", type: "function", function: { name: "weather", arguments: "{}" } }],
        },
        { role: "tool", tool_call_id: "c1", content: "rain" },
      ]);
    });

    it("streams named events in a row", async () => {
      const { respond } = await serve(() => say("Good ", "day"));
      const events = await eventsOf(await respond({ stream: true }));
      expect(events.map(({ type }) => type)).toEqual([
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
      ]);
      expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index));
      expect(events.at(-1).response).toMatchObject({
        status: "completed",
        output: [{ id: events[2].item.id, content: [{ text: "Good day" }] }],
        usage: { total_tokens: 5 },
      });
    });

    it("streams calls of functions", async () => {
      const { respond, asked } = await serve(function* () {
        const named = { name: "weather", arguments: "{" };
        yield { tools: [{ index: 0, id: "c1", type: "function", function: named }] };
        yield { tools: [{ index: 0, function: { arguments: "}" } }] };
      });
      const tools = [{ type: "function", name: "weather", parameters: { type: "object" } }];
      const events = await eventsOf(await respond({ tools, stream: true }));
      expect(events.slice(2).map(({ type }) => type)).toEqual([
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
      ]);
      expect(events.at(-1).response.output).toMatchObject([
        { type: "function_call", call_id: "c1", name: "weather", arguments: "{}", status: "completed" },
      ]);
      expect(asked[0]!.tools).toMatchObject([{ type: "function", function: { name: "weather" } }]);
    });

    it("is incomplete when the text ran into its limit", async () => {
      const { respond } = await serve(function* () {
        yield { text: "a", reason: "length" };
      });
      const incomplete = { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } };
      expect(await (await respond({})).json()).toMatchObject(incomplete);
      const last = (await eventsOf(await respond({ stream: true }))).at(-1);
      expect(last).toMatchObject({ type: "response.incomplete", response: incomplete });
    });

    it("ends a stream that failed with an error event", async () => {
      const { respond } = await serve(function* () {
        yield { text: "a" };
        throw new Error("no memory");
      });
      const last = (await eventsOf(await respond({ stream: true }))).at(-1);
      expect(last).toMatchObject({ type: "error", message: expect.stringContaining("no memory") });
    });

    it.each([
      ["previous_response_id", { previous_response_id: "resp_1" }],
      ["background", { background: true }],
      ["tools[0].type", { tools: [{ type: "web_search" }] }],
      ["input", { input: [] }],
      ["input[0].type", { input: [{ type: "image" }] }],
    ])("refuses %s", async (param, body) => {
      const { respond } = await serve(() => say("x"));
      const response = await respond(body);
      expect(response.status).toBe(400);
      expect(await response.json()).toMatchObject({ error: { param, type: "invalid_request_error" } });
    });
  });
});
