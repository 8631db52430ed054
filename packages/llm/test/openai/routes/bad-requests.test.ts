import { Triton } from "@tritonjs/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openai } from "../../../src/openai/index.js";
import { bindText, post, say } from "../support/openai-server.js";

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
    ["100 stop strings", { ...chat, stop: new Array(100).fill("x") }, 400, "stop", "array_above_max_length"],
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
