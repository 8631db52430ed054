import { Triton } from "@tritonjs/core";
import { textEmbedder, textGenerator } from "@tritonjs/llm";
import { openAiFetchHandler } from "@tritonjs/llm/openai";
import { expectThat, type FuzzTarget } from "../engine/target.js";
import { httpMessage } from "../structures/http-message.js";
import { fetchTarget, requestOf } from "../support/fetch-target.js";

/** Bodies and paths of the OpenAI endpoints, over a model that repeats its prompt and one of embeddings. */
export async function open(): Promise<FuzzTarget> {
  const triton = new Triton({
    logger: { error() {}, warn() {}, info() {}, debug() {} },
    security: { restrictedEndpoints: [] },
  });
  const models = [
    triton.bind({
      modelName: "text",
      inferFunc: textGenerator(async function* (request) {
        yield "Hello";
        yield String(request.prompt ?? "").slice(0, 20);
      }),
    }),
    triton.bind({
      modelName: "vectors",
      inferFunc: textEmbedder((texts) => texts.map(({ length }) => [length, 1, 2])),
      config: { maxBatchSize: 8 },
    }),
  ];
  await Promise.all(models.map((model) => model.ready()));
  const post = (path: string, body: object) => httpMessage(`POST /v1/${path}`, JSON.stringify(body));
  const messages = [
    { role: "system", content: "Be brief." },
    { role: "user", content: [{ type: "text", text: "Hello" }] },
  ];
  const tools = [
    { type: "function", function: { name: "f", parameters: { type: "object", properties: {} } } },
  ];
  const seeds = [
    post("chat/completions", {
      model: "text",
      messages,
      max_tokens: 5,
      temperature: 0.5,
      stop: ["x"],
      n: 2,
      seed: 7,
    }),
    post("chat/completions", {
      model: "text",
      messages,
      stream: true,
      stream_options: { include_usage: true },
    }),
    post("chat/completions", {
      model: "text",
      messages: [
        ...messages,
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }],
        },
        { role: "tool", tool_call_id: "c", content: "1" },
      ],
      tools,
      tool_choice: "auto",
      logprobs: true,
      top_logprobs: 2,
    }),
    post("chat/completions", {
      model: "text",
      messages,
      response_format: { type: "json_schema", json_schema: { name: "s", schema: { type: "object" } } },
    }),
    post("completions", {
      model: "text",
      prompt: ["a", "b"],
      max_tokens: 3,
      echo: true,
      logprobs: 1,
      best_of: 1,
    }),
    post("completions", { model: "text", prompt: "a", stream: true, logit_bias: { 5: -100 } }),
    post("responses", { model: "text", input: "Hello", instructions: "Be brief.", max_output_tokens: 5 }),
    post("responses", {
      model: "text",
      input: [{ role: "user", content: [{ type: "input_text", text: "a" }] }],
      stream: true,
    }),
    post("embeddings", { model: "vectors", input: ["a", "bc"], encoding_format: "float" }),
    post("embeddings", { model: "vectors", input: "a", encoding_format: "base64" }),
    httpMessage("GET /v1/models"),
    httpMessage("GET /v1/models/text"),
  ];
  const handler = openAiFetchHandler(triton);
  return fetchTarget({
    open: (onError) => openAiFetchHandler(triton, { onError }),
    seeds,
    tokens: [
      ...[
        "model",
        "messages",
        "role",
        "content",
        "prompt",
        "input",
        "stream",
        "n",
        "stop",
        "tools",
        "tool_choice",
      ],
      ...[
        "text",
        "vectors",
        "user",
        "assistant",
        "system",
        "tool",
        "developer",
        "image_url",
        "function",
        "required",
      ],
      ...[
        "null",
        "true",
        "[]",
        "{}",
        "-1",
        "1e9",
        "NaN",
        "__proto__",
        "constructor",
        "\\ud800",
        "json_object",
        "auto",
      ],
    ],
    headers: [
      "x-request-id: a",
      "authorization: Bearer x",
      "content-encoding: gzip",
      "accept-encoding: gzip",
    ],
    async check() {
      const response = await handler(requestOf(seeds[0]!)!);
      expectThat(
        response.status === 200 && (await response.text()).includes("Hello"),
        () => `status ${response.status}`,
      );
    },
    close: () => triton.close(),
  });
}
