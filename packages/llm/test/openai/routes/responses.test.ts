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
