import { HumanMessage, type ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { batch } from "@tritonjs/core";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { outcomeOf, thrownBy } from "../../../../test/support/outcome.js";
import { TritonChatModel, TritonEmbeddings } from "../../src/langchain/index.js";
import { type Asked, bindText, newTriton, type Said, say } from "../openai/support/openai-server.js";

function chatOf(answer: (asked: Asked, turn: number) => Generator<Said> | AsyncGenerator<Said>) {
  const triton = newTriton();
  const asked: Asked[] = [];
  bindText(triton, "m", (one) => answer(one, asked.push(one) - 1));
  return { chat: new TritonChatModel({ triton, model: "m", temperature: 0.5, maxTokens: 9 }), asked };
}

function* callWeather(): Generator<Said> {
  const call = {
    id: "call_0",
    type: "function",
    function: { name: "weather", arguments: '{"city":"Rome"}' },
  };
  yield { tools: [{ index: 0, ...call }], reason: "tool_calls" };
}

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });

const weather = tool(async ({ city }) => `sunny in ${city}`, {
  name: "weather",
  description: "Tells the weather of a city.",
  schema: z.object({ city: z.string() }),
});

describe("a chat model of LangChain in process", () => {
  it("answers with its text and the number of its tokens", async () => {
    const { chat, asked } = chatOf(() => say("Good ", "day"));
    const answer = await chat.invoke([["system", "Be kind."], new HumanMessage("Hello")]);
    expect(answer.content).toBe("Good day");
    expect(answer.usage_metadata).toEqual({ input_tokens: 3, output_tokens: 2, total_tokens: 5 });
    expect(asked[0]?.messages).toMatchObject([{ role: "system" }, { role: "user", content: "Hello" }]);
    expect(asked[0]?.sampling).toMatchObject({ temperature: 0.5, max_tokens: 9 });
  });

  it("streams", async () => {
    const { chat } = chatOf(() => say("Good ", "day"));
    const parts: string[] = [];
    for await (const { content } of await chat.stream("Hello"))
      if (content !== "") parts.push(content as string);
    expect(parts).toEqual(["Good ", "day"]);
  });

  it("calls tools, whose results go back to the model", async () => {
    const { chat, asked } = chatOf((_one, turn) => (turn === 0 ? callWeather() : say("Sunny.")));
    const withTools = chat.bindTools([weather]);
    const question = new HumanMessage("The weather in Rome?");
    const first = await withTools.invoke([question]);
    expect(first.tool_calls).toMatchObject([{ id: "call_0", name: "weather", args: { city: "Rome" } }]);
    const result = (await weather.invoke(first.tool_calls![0]!)) as ToolMessage;
    expect((await withTools.invoke([question, first, result])).content).toBe("Sunny.");
    expect(asked[1]?.messages).toMatchObject([
      { role: "user" },
      { role: "assistant", tool_calls: [{ function: { name: "weather", arguments: '{"city":"Rome"}' } }] },
      { role: "tool", tool_call_id: "call_0", content: "sunny in Rome" },
    ]);
  });

  it("streams the calls of tools", async () => {
    const { chat } = chatOf(() => callWeather());
    let whole: Awaited<ReturnType<typeof chat.invoke>> | undefined;
    for await (const chunk of await chat.bindTools([weather]).stream("The weather in Rome?")) {
      whole = whole?.concat(chunk) ?? chunk;
    }
    expect(whole!.tool_calls).toMatchObject([{ name: "weather", args: { city: "Rome" } }]);
  });

  it("cancels the model with its signal", async () => {
    const { chat, asked } = chatOf(async function* (one) {
      yield { text: "Good " };
      await aborted(one.signal);
    });
    const control = new AbortController();
    const stream = await chat.stream("Hello", { signal: control.signal });
    const read = outcomeOf(
      (async () => {
        for await (const chunk of stream) if (chunk.content !== "") control.abort();
      })(),
    );
    expect(await read).toMatch(/abort/i);
    await aborted(asked[0]!.signal);
  });

  it("has the error of a model, and refuses wrong options", async () => {
    const triton = newTriton();
    const chat = new TritonChatModel({ triton, model: "absent" });
    expect(await outcomeOf(chat.invoke("Hello"))).toMatch(/model 'absent'/);
    // @ts-expect-error: no such option
    expect(thrownBy(() => new TritonChatModel({ triton, model: "m", temprature: 1 }))).toMatch(
      /'temprature'/,
    );
  });
});

it("embeddings of LangChain are those of the model", async () => {
  const triton = newTriton();
  triton.bind({
    modelName: "lengths",
    inputs: [{ name: "text", dtype: "BYTES", shape: [1] }],
    outputs: [{ name: "embedding", dtype: "FP32", shape: [2] }],
    config: { maxBatchSize: 4 },
    inferFunc: batch(({ text }) => {
      const rows = text.shape[0] as number;
      const embedding = new Float32Array(rows * 2);
      for (let row = 0; row < rows; row++) embedding.set([text.text(row, 0).length, 1], row * 2);
      return { embedding };
    }),
  });
  const embeddings = new TritonEmbeddings({ triton, model: "lengths" });
  expect(await embeddings.embedDocuments(["a", "bb"])).toEqual([
    [1, 1],
    [2, 1],
  ]);
  expect(await embeddings.embedQuery("ccc")).toEqual([3, 1]);
});
