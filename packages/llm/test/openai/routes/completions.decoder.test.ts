import { textGeneration } from "@tritonjs/llm";
import { expect, it } from "vitest";
import { STORIES } from "../../support/stories.js";
import { eventsOf, newTriton, post, serveOpenAi } from "../support/openai-server.js";

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

async function serve() {
  const triton = newTriton();
  triton.bind({ modelName: "m", inferFunc: textGeneration({ directory: STORIES, intraOpNumThreads: 1 }) });
  const url = await serveOpenAi(triton);
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
  const { complete } = await serve();
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
  const { complete, send } = await serve();
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
  const { complete } = await serve();
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
  const { complete } = await serve();
  const sampled = { temperature: 1.5, seed: 7, max_tokens: 6 };
  const all = (await complete({ ...sampled, n: 4 })).choices;
  const mean = ({ logprobs: { token_logprobs: values } }: Choice) =>
    values.reduce<number>((sum, value) => sum + value!, 0) / values.length;
  const best = [...all].sort((a, b) => mean(b) - mean(a)).slice(0, 2);
  const chosen = await complete({ ...sampled, n: 2, best_of: 4 });
  expect(chosen.choices.map(({ text }) => text)).toEqual(best.map(({ text }) => text));
  expect(chosen.usage).toMatchObject({ completion_tokens: all.flatMap((one) => one.logprobs.tokens).length });
});

it("a prompt beyond the context has OpenAI's code and the field of its endpoint", async () => {
  const triton = newTriton();
  triton.bind({ modelName: "m", inferFunc: textGeneration({ directory: STORIES, intraOpNumThreads: 1 }) });
  const url = await serveOpenAi(triton);
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
