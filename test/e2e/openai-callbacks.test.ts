import { Triton, TritonError } from "@tritonjs/core";
import { textEmbedder, textGenerator } from "@tritonjs/llm";
import { tritonProvider } from "@tritonjs/llm/ai-sdk";
import { TritonChatModel } from "@tritonjs/llm/langchain";
import { openAiFetchHandler } from "@tritonjs/llm/openai";
import { generateText, jsonSchema, Output, tool } from "ai";
import { afterAll, describe, expect, it } from "vitest";

const triton = new Triton();
triton.bind({
  modelName: "writer",
  inferFunc: textGenerator(async function* ({ messages, prompt, tools }) {
    if (prompt === "fail") throw new TritonError("INVALID_ARG", "too long");
    if (tools !== undefined) {
      yield { toolCall: { name: "clock", id: "c1" } };
      yield { toolCall: { arguments: '{"zone":"UTC"}' } };
    } else {
      yield* ["Hello ", `${messages?.length ?? prompt}`, ". Bye"];
    }
    yield { usage: { promptTokens: 7, completionTokens: 4 } };
  }),
});
triton.bind({
  modelName: "lengths",
  inferFunc: textEmbedder((texts) => texts.map(({ length }) => [length])),
});
/** Answers with what it is told to obey. */
const obedient = textGenerator(
  ({ tools, toolChoice, parallelToolCalls, responseFormat }) => {
    const told = { toolChoice, parallelToolCalls, responseFormat };
    if (toolChoice === undefined || toolChoice === "auto" || toolChoice === "none")
      return JSON.stringify(told);
    return { toolCall: { name: tools!.at(-1)!.function.name, arguments: JSON.stringify(told) } };
  },
  { obeys: ["toolChoice", "responseFormat"] },
);
triton.bind({ modelName: "obedient", inferFunc: obedient });
const handler = openAiFetchHandler(triton);
afterAll(() => triton.close());

async function post(path: string, body: object) {
  const init = {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  };
  const answer = await handler(new Request(`http://localhost/v1/${path}`, init));
  return { status: answer.status, text: await answer.text() };
}

const chat = { model: "writer", messages: [{ role: "user", content: "hi" }] };

it("a text generator answers chat completions, whole and as a stream, with usage and stop strings", async () => {
  const stopped = JSON.parse((await post("chat/completions", { ...chat, stop: "." })).text);
  expect(stopped.choices[0]).toMatchObject({ message: { content: "Hello 1" }, finish_reason: "stop" });
  const whole = JSON.parse((await post("chat/completions", chat)).text);
  expect(whole.usage).toMatchObject({ prompt_tokens: 7 });
  const { text } = await post("chat/completions", { ...chat, stream: true });
  const chunks = text
    .split("\n\n")
    .filter((event) => event.startsWith("data: {"))
    .map((event) => JSON.parse(event.slice("data: ".length)));
  const deltas = chunks.map(({ choices }) => choices[0]?.delta.content ?? "");
  expect(deltas.join("")).toBe("Hello 1. Bye");
});

it("a text generator's calls of tools become tool_calls", async () => {
  const tools = [{ type: "function", function: { name: "clock", parameters: { type: "object" } } }];
  const { choices } = JSON.parse((await post("chat/completions", { ...chat, tools })).text);
  expect(choices[0]).toMatchObject({
    finish_reason: "tool_calls",
    message: { tool_calls: [{ id: "c1", function: { name: "clock", arguments: '{"zone":"UTC"}' } }] },
  });
});

it("an error of a text generator has its status and its message", async () => {
  const { status, text } = await post("completions", { model: "writer", prompt: "fail" });
  expect([status, JSON.parse(text).error.message]).toEqual([400, expect.stringContaining("too long")]);
});

it("a text embedder answers embeddings", async () => {
  const body = { model: "lengths", input: ["a", "abc"], encoding_format: "float" };
  const { data } = JSON.parse((await post("embeddings", body)).text);
  expect(data.map(({ embedding }: { embedding: number[] }) => embedding)).toEqual([[1], [3]]);
});

describe("a demand on the answer", () => {
  const parameters = { type: "object", properties: { zone: { type: "string" } } };
  const named = (name: string) => ({ type: "function", function: { name, parameters } });
  const flat = (name: string) => ({ type: "function", name, parameters });
  const tools = [named("clock"), named("add")];
  const flatTools = [flat("clock"), flat("add")];
  const allowed = { mode: "required", tools: [named("clock")] };
  const format = { type: "json_schema", schema: parameters };
  const json_schema = { name: "zone", schema: parameters };
  const [chats, completions, responses] = ["chat/completions", "completions", "responses"];

  it.each([
    [chats, { tools, tool_choice: "required" }, "tool_choice", { call: "add", toolChoice: "required" }],
    [
      chats,
      { tools, tool_choice: named("clock") },
      "tool_choice",
      { call: "clock", toolChoice: { name: "clock" } },
    ],
    [
      chats,
      { tools, tool_choice: { type: "allowed_tools", allowed_tools: allowed }, parallel_tool_calls: false },
      "tool_choice",
      { call: "clock", toolChoice: "required", parallelToolCalls: false },
    ],
    [chats, { tools, tool_choice: "none" }, undefined, { toolChoice: "none" }],
    [
      chats,
      { response_format: { type: "json_object", schema: parameters } },
      "response_format",
      { responseFormat: format },
    ],
    [
      chats,
      { response_format: { type: "json_schema", json_schema } },
      "response_format",
      { responseFormat: format },
    ],
    [chats, { response_format: { type: "text" } }, undefined, {}],
    [
      chats,
      { guided_choice: ["a"] },
      "response_format",
      { responseFormat: { type: "choice", texts: ["a"] } },
    ],
    [
      completions,
      { response_format: { type: "json_object", schema: parameters } },
      "response_format",
      { responseFormat: format },
    ],
    [completions, { guided_json: parameters }, "response_format", { responseFormat: format }],
    [
      responses,
      { tools: flatTools, tool_choice: flat("clock") },
      "tool_choice",
      { call: "clock", toolChoice: { name: "clock" } },
    ],
    [
      responses,
      { tools: flatTools, tool_choice: { type: "allowed_tools", mode: "required", tools: [flat("clock")] } },
      "tool_choice",
      { call: "clock", toolChoice: "required" },
    ],
    [
      responses,
      { text: { format: { type: "json_object", schema: parameters } } },
      "response_format",
      { responseFormat: format },
    ],
  ])(
    "of %s %j reaches a generator that obeys it, and is refused for any other",
    async (path, fields, param, told) => {
      const input =
        path === chats
          ? { messages: chat.messages }
          : path === completions
            ? { prompt: "hi" }
            : { input: "hi" };
      for (const stream of [false, true]) {
        const { status, text } = await post(path, { model: "obedient", ...input, ...fields, stream });
        expect(status).toBe(200);
        if (stream) continue;
        const { choices: [choice] = [], output: [item] = [] } = JSON.parse(text);
        const called =
          choice?.message?.tool_calls?.[0].function ?? (item?.type === "function_call" ? item : undefined);
        const answer = called?.arguments ?? choice?.message?.content ?? choice?.text ?? item?.content[0].text;
        expect({ ...JSON.parse(answer), call: called?.name }).toMatchObject(told);
      }
      const refused = await post(path, { model: "writer", ...input, ...fields });
      expect(refused.status).toBe(param === undefined ? 200 : 400);
      if (param === undefined) return;
      expect(JSON.parse(refused.text).error).toMatchObject({
        type: "invalid_request_error",
        param,
        message: expect.stringMatching(/ model 'writer' .* obeys: \["(toolChoice|responseFormat)"\]/),
      });
    },
  );

  it("comes from the AI SDK and from LangChain too", async () => {
    const ask = (model: string, toolChoice: "required" | "auto") =>
      generateText({
        model: tritonProvider(triton)(model),
        prompt: "hi",
        tools: { add: tool({ inputSchema: jsonSchema(parameters as object) }) },
        toolChoice,
        maxRetries: 0,
      });
    const { toolCalls } = await ask("obedient", "required");
    expect(toolCalls).toMatchObject([{ toolName: "add", input: { toolChoice: "required" } }]);
    expect((await ask("writer", "auto")).toolCalls).toMatchObject([{ toolName: "clock" }]);
    await expect(ask("writer", "required")).rejects.toThrow(/obeys: \["toolChoice"\]/);
    const output = Output.object({ schema: jsonSchema(parameters as object) });
    const object = await generateText({ model: tritonProvider(triton)("obedient"), prompt: "hi", output });
    expect(object.output).toMatchObject({ responseFormat: format });

    const langchain = (model: string) =>
      new TritonChatModel({ triton, model })
        .bindTools(tools, { tool_choice: "any", parallel_tool_calls: false })
        .invoke("hi");
    expect((await langchain("obedient")).tool_calls).toMatchObject([
      { name: "add", args: { toolChoice: "required", parallelToolCalls: false } },
    ]);
    await expect(langchain("writer")).rejects.toThrow(/obeys: \["toolChoice"\]/);
  });
});
