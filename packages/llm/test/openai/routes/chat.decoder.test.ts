import type { BytesArray } from "@tritonjs/core/types";
import { textGeneration } from "@tritonjs/llm";
import { expect, it } from "vitest";
import { STORIES } from "../../support/stories.js";
import { eventsOf, newTriton, post, serveOpenAi } from "../support/openai-server.js";

const tools = ["weather", "time"].map((name) => ({
  type: "function",
  function: {
    name,
    parameters: {
      type: "object",
      properties: { city: { enum: ["Ulm", "Rom"] } },
      required: ["city"],
      additionalProperties: false,
    },
  },
}));

it("a decoder is held to calls and schemas, and refuses tools that its template does not know", async () => {
  const triton = newTriton();
  const stories = triton.bind({
    modelName: "stories",
    inferFunc: textGeneration({ directory: STORIES, intraOpNumThreads: 1 }),
  });
  const url = await serveOpenAi(triton);
  const messages = [{ role: "user", content: "Tell me about a dog." }];
  // The small model writes white space wherever JSON has it.
  const spaces = [...Array(33).keys()].flatMap((id) => [[String(id), -100]]);
  const body = { model: "stories", messages, tools, max_tokens: 300, logit_bias: Object.fromEntries(spaces) };
  const chat = (fields: object) => post(`${url}/v1/chat/completions`, { ...body, ...fields });

  const named = await (await chat({ tool_choice: { type: "function", function: { name: "time" } } })).json();
  expect(named).toMatchObject({
    choices: [{ message: { content: null, tool_calls: [{ function: { name: "time" } }] } }],
  });
  const events = await eventsOf(await chat({ tool_choice: "required", stream: true }));
  const calls = events.flatMap((event) => event.choices?.[0]?.delta.tool_calls ?? []);
  expect(["weather", "time"]).toContain(calls[0].function.name);
  const texts = events.map((event) => event.choices?.[0]?.delta.content ?? "");
  expect(texts.join("")).toBe("");

  const schema = tools[0]!.function.parameters;
  const response_format = { type: "json_object", schema };
  const isCity = expect.stringMatching(/^\{\s*"city"\s*:\s*"(Ulm|Rom)"\s*\}$/);
  const held = await (await chat({ tools: [], response_format })).json();
  expect(held).toMatchObject({ choices: [{ message: { content: isCity } }] });
  const { logit_bias } = body;
  const tool_choice = { type: "function", function: { name: "time" } };
  for (const demand of [{ tool_choice }, { response_format }]) {
    const sampling_parameters = [JSON.stringify({ ...demand, logit_bias, max_tokens: 300 })];
    const inputs = {
      messages: [JSON.stringify(messages)],
      tools: [JSON.stringify(tools)],
      sampling_parameters,
    };
    for await (const { text_output } of stories.stream(inputs)) {
      expect((text_output as BytesArray).text()).toEqual(isCity);
    }
  }

  const auto = await chat({});
  expect(auto.status).toBe(400);
  expect(await auto.json()).toMatchObject({ error: { param: "tools", code: "unsupported_parameter" } });
  expect((await chat({ tool_choice: "none", max_tokens: 2 })).status).toBe(200);
});
