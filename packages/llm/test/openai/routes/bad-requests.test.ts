import { batch, sample, type TensorSpec, Triton } from "@tritonjs/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type OpenAiOptions, openai } from "../../../src/openai/index.js";
import { type Asked, bindText, newTriton, post, say, serveOpenAi } from "../support/openai-server.js";

describe("bad requests", () => {
  const logger = { error() {}, warn() {}, info() {}, debug() {} };

  const triton = new Triton({ logger });

  let url = "";

  beforeAll(async () => {
    bindText(triton, "m", () => say("fine"));
    bindText(triton, "prompts", () => say("fine"), ["text_input"]);
    bindText(triton, "callers", () => say("fine"), ["messages", "tools"]);
    triton.bind({
      modelName: "adder",
      inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
      inferFunc: (requests) => requests.map(() => ({ y: [1] })),
    });
    const { addresses } = await triton.serve({ frontends: [openai({ port: 0, maxBodySize: 1_000_000 })] });
    url = addresses.openai!.url;
  });

  afterAll(() => triton.close());

  const user = { role: "user", content: "Hello" };

  const chat = { model: "m", messages: [user] };

  const completion = { model: "m", prompt: "Hello" };

  const tool = { type: "function", function: { name: "f" } };

  describe("a bad request gets OpenAI's error, with the field at fault", () => {
    it.each([
      ["unknown model", { ...chat, model: "none" }, 404, "model", "model_not_found"],
      ["no model", { messages: [user] }, 400, "model", "missing_required_parameter"],
      ["a model that is not text", { ...chat, model: "adder" }, 400, "model", "model_not_supported"],
      ["no messages", { model: "m" }, 400, "messages", "missing_required_parameter"],
      ["empty messages", { ...chat, messages: [] }, 400, "messages", "empty_array"],
      [
        "a wrong role",
        { ...chat, messages: [{ role: "king", content: "" }] },
        400,
        "messages[0].role",
        "invalid_value",
      ],
      ["a message that is text", { ...chat, messages: ["Hello"] }, 400, "messages[0]", "invalid_type"],
      [
        "no content",
        { ...chat, messages: [{ role: "user" }] },
        400,
        "messages[0].content",
        "missing_required_parameter",
      ],
      [
        "a tool's answer without a call",
        { ...chat, messages: [{ role: "tool", content: "x" }] },
        400,
        "messages[0].tool_call_id",
        "missing_required_parameter",
      ],
      ["max_tokens 0", { ...chat, max_tokens: 0 }, 400, "max_tokens", "invalid_value"],
      ["max_tokens 1e12", { ...chat, max_tokens: 1e12 }, 400, "max_tokens", "invalid_value"],
      ["n 1000", { ...chat, n: 1000 }, 400, "n", "invalid_value"],
      ["a temperature of text", { ...chat, temperature: "NaN" }, 400, "temperature", "invalid_type"],
      ["a temperature of 3", { ...chat, temperature: 3 }, 400, "temperature", "invalid_value"],
      [
        "100 stop strings",
        { ...chat, stop: new Array(100).fill("x") },
        400,
        "stop",
        "array_above_max_length",
      ],
      ["a stop string that is a number", { ...chat, stop: 5 }, 400, "stop", "invalid_type"],
      ["best_of", { ...chat, best_of: 3 }, 400, "best_of", "unsupported_value"],
      ["top_logprobs alone", { ...chat, top_logprobs: 2 }, 400, "top_logprobs", "invalid_value"],
      ["top_logprobs 0 alone", { ...chat, top_logprobs: 0 }, 400, "top_logprobs", "invalid_value"],
      ["stream_options alone", { ...chat, stream_options: {} }, 400, "stream_options", "invalid_value"],
      [
        "an unknown response format",
        { ...chat, response_format: { type: "xml" } },
        400,
        "response_format.type",
        "invalid_value",
      ],
      [
        "a schema that is missing",
        { ...chat, response_format: { type: "json_schema" } },
        400,
        "response_format.json_schema.schema",
        "missing_required_parameter",
      ],
      [
        "a tool without a name",
        { ...chat, tools: [{ type: "function", function: {} }] },
        400,
        "tools[0].function.name",
        "missing_required_parameter",
      ],
      [
        "a chosen tool that is missing",
        { ...chat, tools: [tool], tool_choice: { type: "function", function: { name: "g" } } },
        400,
        "tool_choice",
        "invalid_value",
      ],
      [
        "a required call without tools",
        { ...chat, tool_choice: "required" },
        400,
        "tool_choice",
        "invalid_value",
      ],
      [
        "a list of tools with one that is missing",
        {
          ...chat,
          tools: [tool],
          tool_choice: { type: "allowed_tools", mode: "auto", tools: [tool, { name: "g" }] },
        },
        400,
        "tool_choice",
        "invalid_value",
      ],
      [
        "an empty list of tools",
        {
          ...chat,
          tools: [tool],
          tool_choice: { type: "allowed_tools", allowed_tools: { mode: "auto", tools: [] } },
        },
        400,
        "tool_choice",
        "invalid_value",
      ],
      [
        "a required call for a model that is not told of it",
        { ...chat, model: "callers", tools: [tool], tool_choice: "required" },
        400,
        "tool_choice",
        "unsupported_value",
      ],
      [
        "a structure for a model that is not told of it",
        { ...chat, model: "callers", guided_regex: "a+" },
        400,
        "guided_regex",
        "unsupported_value",
      ],
      ["functions", { ...chat, functions: [{ name: "f" }] }, 400, "functions", "unsupported_parameter"],
      ["audio", { ...chat, modalities: ["text", "audio"] }, 400, "modalities", "unsupported_parameter"],
      ["a chat without a template", { ...chat, model: "prompts" }, 400, "messages", "chat_template_missing"],
    ])("chat: %s", async (_name, body, status, param, code) => {
      const response = await post(`${url}/v1/chat/completions`, body);
      expect(response.status).toBe(status);
      expect(await response.json()).toEqual({
        error: { message: expect.any(String), type: "invalid_request_error", param, code },
        detail: expect.any(String),
      });
    });

    it.each([
      ["no prompt", { model: "m" }, "prompt", "missing_required_parameter"],
      ["tokens", { ...completion, prompt: [1, 2] }, "prompt", "unsupported_value"],
      ["fewer candidates than choices", { ...completion, n: 3, best_of: 2 }, "best_of", "invalid_value"],
      ["a suffix", { ...completion, suffix: "end" }, "suffix", "unsupported_parameter"],
      ["too many prompts", { ...completion, prompt: new Array(100).fill("x"), n: 2 }, "n", "invalid_value"],
      [
        "JSON of a model that cannot",
        { ...completion, model: "prompts", response_format: { type: "json_object" } },
        "response_format",
        "unsupported_value",
      ],
    ])("completion: %s", async (_name, body, param, code) => {
      const response = await post(`${url}/v1/completions`, body);
      expect(response.status).toBe(400);
      expect(await response.json()).toMatchObject({ error: { param, code } });
    });

    it("names a number that JSON does not have", async () => {
      const response = await post(`${url}/v1/chat/completions`, '{"model":"m","temperature":NaN}');
      expect(response.status).toBe(400);
      expect(await response.json()).toMatchObject({
        error: { message: "'temperature': expected a number, got NaN", param: "temperature" },
      });
    });

    it.each(["", "{", "[]", '"text"', "nul", "\u0000"])("answers 400 to the body %j", async (body) => {
      const response = await post(`${url}/v1/chat/completions`, body);
      expect(response.status).toBe(400);
      expect(await response.json()).toMatchObject({ error: { code: "invalid_json", param: null } });
    });

    it("answers 413 to a body above the limit, declared or in chunks, and serves on", async () => {
      const body = JSON.stringify({ ...completion, prompt: "x".repeat(1_000_001) });
      const chunks = new ReadableStream({
        start(controller) {
          controller.enqueue(Buffer.from(body));
          controller.close();
        },
      });
      const init = { method: "POST", body: chunks, duplex: "half" } as RequestInit;
      for (const response of [
        await post(`${url}/v1/completions`, body),
        await fetch(`${url}/v1/completions`, init),
      ]) {
        expect(response.status).toBe(413);
        expect(await response.json()).toMatchObject({ error: { code: "content_too_large" } });
      }
      expect((await post(`${url}/v1/completions`, completion)).status).toBe(200);
    });

    it("answers 413 to a body of too many small values, which strings do not count as", async () => {
      const many = (part: string, count: number) =>
        `{"model":"m","prompt":"Hello","user":[${Array(count).fill(part).join(",")}]}`;
      for (const [part, count, parts] of [
        ["{}", 140_000, "131072 objects"],
        ["[]", 300_000, "524288 values"],
      ] as const) {
        const response = await post(`${url}/v1/completions`, many(part, count));
        expect(response.status).toBe(413);
        const { error } = (await response.json()) as { error: { message: string; code: string } };
        expect(error).toMatchObject({ code: "content_too_large" });
        expect(error.message).toContain(`expected at most ${parts}, got more`);
      }
      const text = `a ", \\ ${'[{,}],"\\'.repeat(80_000)}`;
      expect((await post(`${url}/v1/completions`, { model: "m", prompt: text })).status).toBe(200);
    });

    it("answers 404 to an unknown path and 405 to another method", async () => {
      const unknown = await fetch(`${url}/v1/nothing`);
      expect(unknown.status).toBe(404);
      expect(await unknown.json()).toMatchObject({ error: { message: "Invalid URL (GET /v1/nothing)" } });
      const other = await fetch(`${url}/v1/chat/completions`);
      expect(other.status).toBe(405);
      expect(other.headers.get("allow")).toBe("POST");
    });

    it.each([98, 100_000])("answers 400 to a schema that is nested without end: %d levels", async (depth) => {
      const schema = `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;
      const format = `{"type":"json_schema","json_schema":{"name":"s","schema":${schema}}}`;
      const body = `{"model":"m","prompt":"x","response_format":${format}}`;
      const response = await post(`${url}/v1/completions`, body);
      expect(response.status).toBe(400);
      expect(await response.json()).toMatchObject({
        error: {
          type: "invalid_request_error",
          message: expect.stringContaining("expected at most 100 levels of nesting, got more"),
        },
      });
    });
  });
});

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
