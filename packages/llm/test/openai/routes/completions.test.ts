import { describe, expect, it } from "vitest";
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
