import { batch, sample, type TensorSpec } from "@tritonjs/core";
import { describe, expect, it } from "vitest";
import type { OpenAiOptions } from "../../../src/openai/index.js";
import { type Asked, bindText, newTriton, post, say, serveOpenAi } from "../support/openai-server.js";

const OUTPUTS: TensorSpec[] = [{ name: "text_output", dtype: "BYTES", shape: [1] }];

describe("a model with the inputs of TensorRT-LLM, with batches and one response", () => {
  it("gets each field as a tensor of its shape", async () => {
    const triton = newTriton();
    const seen: Record<string, unknown>[] = [];
    triton.bind({
      modelName: "trt",
      inputs: [
        { name: "text_input", dtype: "BYTES", shape: [1] },
        { name: "max_tokens", dtype: "INT32", shape: [1] },
        { name: "stop_words", dtype: "BYTES", shape: [-1], optional: true },
        { name: "bad_words", dtype: "BYTES", shape: [-1], optional: true },
        { name: "temperature", dtype: "FP32", shape: [1], optional: true },
        { name: "seed", dtype: "UINT64", shape: [1], optional: true },
        { name: "stream", dtype: "BOOL", shape: [1], optional: true },
        { name: "sampling_param_exclude_input_from_output", dtype: "BOOL", shape: [1], optional: true },
        { name: "guided_decoding_guide_type", dtype: "BYTES", shape: [1], optional: true },
        { name: "guided_decoding_guide", dtype: "BYTES", shape: [1], optional: true },
      ],
      outputs: OUTPUTS,
      config: { maxBatchSize: 8 },
      inferFunc: batch((given) => {
        const { text_input, max_tokens, stop_words, bad_words, temperature, seed, guided_decoding_guide } =
          given;
        seen.push({
          text: text_input.text(0, 0),
          max: max_tokens.get(0, 0),
          stop: stop_words?.strings(),
          bad: bad_words?.strings(),
          temperature: temperature?.get(0, 0),
          seed: seed?.get(0, 0),
          exclude: given.sampling_param_exclude_input_from_output?.get(0, 0),
          guide: guided_decoding_guide?.text(0, 0),
        });
        return { text_output: [["fine: no. "]] };
      }),
    });
    const url = await serveOpenAi(triton);
    const schema = { type: "object" };
    const answer = await post(`${url}/v1/completions`, {
      model: "trt",
      prompt: "Once",
      max_tokens: 5,
      stop: ["no", "never"],
      bad_words: ["damn"],
      temperature: 0.5,
      seed: -1,
      response_format: { type: "json_schema", json_schema: { name: "s", schema } },
    });
    expect(await answer.json()).toMatchObject({
      choices: [{ text: "fine: ", finish_reason: "stop" }],
      usage: null,
    });
    expect(seen).toEqual([
      {
        text: "Once",
        max: 5,
        stop: ["no", "never"],
        bad: ["damn"],
        temperature: 0.5,
        seed: 2n ** 64n - 1n,
        exclude: 1,
        guide: '{"type":"object"}',
      },
    ]);
  });
});

describe("a model with the inputs of vLLM's Triton backend", () => {
  const schema = { type: "object" };
  const json_schema = { name: "s", schema };

  async function askedFor(
    fields: object,
    options: OpenAiOptions = {},
  ): Promise<{ status: number; sampling: unknown }> {
    const triton = newTriton();
    const asked: Asked[] = [];
    const answer = (one: Asked) => {
      asked.push(one);
      return say("fine");
    };
    bindText(triton, "vllm", answer, ["text_input", "sampling_parameters", "stream"]);
    const url = await serveOpenAi(triton, options);
    const body = { model: "vllm", prompt: "Once", max_tokens: 5, ...fields };
    const { status } = await post(`${url}/v1/completions`, body);
    return { status, sampling: asked[0]?.sampling };
  }

  it.each([
    [{ response_format: { type: "json_schema", json_schema } }, { json: schema }],
    [{ response_format: { type: "json_object" } }, { json_object: true }],
    [{ response_format: { type: "json_object", schema } }, { json: schema }],
    [{ guided_json: schema }, { json: schema }],
    [{ guided_json: JSON.stringify(schema) }, { json: schema }],
    [{ guided_regex: "a+" }, { regex: "a+" }],
    [{ guided_choice: ["yes", "no"] }, { choice: ["yes", "no"] }],
    [{ guided_grammar: "root ::= [0-9]" }, { grammar: "root ::= [0-9]" }],
    [{ structured_outputs: { json: schema } }, { json: schema }],
    [{ structured_outputs: { regex: "a+" } }, { regex: "a+" }],
    [{ structured_outputs: { choice: ["yes"] } }, { choice: ["yes"] }],
    [{ structured_outputs: { grammar: "root ::= [0-9]" } }, { grammar: "root ::= [0-9]" }],
    [{ structured_outputs: { json_object: true } }, { json_object: true }],
  ])("gets %j in the field of its release, and no field that the backend refuses", async (fields, guide) => {
    const { sampling } = await askedFor(fields);
    expect(sampling).toEqual({ max_tokens: 5, structured_outputs: JSON.stringify(guide) });
    const older = await askedFor(fields, { structureFields: { vllm: "guided_decoding" } });
    expect(older.sampling).toEqual({ max_tokens: 5, guided_decoding: JSON.stringify(guide) });
  });

  it("gets no structure without one, and the client an error for two", async () => {
    const plain = await askedFor({ response_format: { type: "text" }, stop: "", bad_words: "" });
    expect(plain).toEqual({ status: 200, sampling: { max_tokens: 5 } });
    const two = await askedFor({ response_format: { type: "json_object" }, guided_regex: "a+" });
    expect(two).toEqual({ status: 400, sampling: undefined });
    expect((await askedFor({ guided_json: "{" })).status).toBe(400);
    for (const more of [
      {},
      { structural_tag: "x" },
      { regex: "a", json: schema },
      { choice: "a" },
      "regex",
    ]) {
      expect((await askedFor({ structured_outputs: more })).status).toBe(400);
    }
    const beside = { structured_outputs: { regex: "a" }, guided_choice: ["b"] };
    expect((await askedFor(beside)).status).toBe(400);
  });
});

describe("a model that takes only messages", () => {
  it("answers chats, and refuses completions", async () => {
    const triton = newTriton();
    triton.bind({
      modelName: "chatty",
      inputs: [{ name: "messages", dtype: "BYTES", shape: [1] }],
      outputs: OUTPUTS,
      config: { batching: false },
      inferFunc: sample(({ messages }) => ({
        text_output: [messages.json<{ content: string }[]>(0)[0]!.content],
      })),
    });
    const url = await serveOpenAi(triton);
    const messages = [{ role: "user", content: "Hello" }];
    expect(
      await (await post(`${url}/v1/chat/completions`, { model: "chatty", messages })).json(),
    ).toMatchObject({
      choices: [{ message: { content: "Hello" } }],
    });
    const refused = await post(`${url}/v1/completions`, { model: "chatty", prompt: "Hello" });
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ error: { param: "model", code: "model_not_supported" } });
  });
});

describe("a model of one text in and one text out", () => {
  it("answers completions and streams, whatever its tensors are called", async () => {
    const triton = newTriton();
    triton.bind({
      modelName: "shout",
      inputs: [{ name: "line", dtype: "BYTES", shape: [1] }],
      outputs: [{ name: "loud", dtype: "BYTES", shape: [1] }],
      config: { batching: false },
      inferFunc: sample(({ line }) => ({ loud: [line.text(0).toUpperCase()] })),
    });
    const url = await serveOpenAi(triton);
    const body = { model: "shout", prompt: "hey" };
    expect(await (await post(`${url}/v1/completions`, body)).json()).toMatchObject({
      choices: [{ text: "HEY" }],
    });
    const stream = await post(`${url}/v1/completions`, { ...body, stream: true });
    expect(await stream.text()).toContain('"text":"HEY"');
  });
});
