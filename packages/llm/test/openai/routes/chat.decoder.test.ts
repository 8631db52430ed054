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

it("a decoder is forced to call tools, and refuses tools that its template does not know", async () => {
  const triton = newTriton();
  triton.bind({
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

  const auto = await chat({});
  expect(auto.status).toBe(400);
  expect(await auto.json()).toMatchObject({ error: { param: "tools", code: "unsupported_parameter" } });
  expect((await chat({ tool_choice: "none", max_tokens: 2 })).status).toBe(200);
});
