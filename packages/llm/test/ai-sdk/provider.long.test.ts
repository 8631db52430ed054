import { batch } from "@tritonjs/core";
import { embedMany, generateText, rerank, stepCountIs, streamText, tool } from "ai";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { outcomeOf } from "../../../../test/support/outcome.js";
import { tritonProvider } from "../../src/ai-sdk/index.js";
import { bindText, newTriton, say } from "../openai/support/openai-server.js";

const lengths = (triton: ReturnType<typeof newTriton>) =>
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

describe("the provider of the AI SDK in process", () => {
  it("generates and streams texts without a server", async () => {
    const triton = newTriton();
    bindText(triton, "m", () => say("Good ", "day"));
    const model = tritonProvider(triton)("m");
    const { text, usage } = await generateText({ model, prompt: "Hello" });
    expect([text, usage.outputTokens]).toEqual(["Good day", 2]);
    const parts: string[] = [];
    for await (const part of streamText({ model, prompt: "Hello" }).textStream) parts.push(part);
    expect(parts).toEqual(["Good ", "day"]);
  });

  it("calls tools", async () => {
    const triton = newTriton();
    let turn = 0;
    const call = {
      index: 0,
      id: "call_0",
      type: "function",
      function: { name: "weather", arguments: '{"city":"Rome"}' },
    };
    bindText(triton, "m", () =>
      turn++ === 0
        ? ([{ tools: [call], reason: "tool_calls" }][Symbol.iterator]() as never)
        : say("It is sunny."),
    );
    const asked: string[] = [];
    const weather = tool({
      description: "Tells the weather of a city.",
      inputSchema: z.object({ city: z.string() }),
      execute: async ({ city }) => {
        asked.push(city);
        return "sunny";
      },
    });
    const { text } = await generateText({
      model: tritonProvider(triton).languageModel("m"),
      prompt: "The weather in Rome?",
      tools: { weather },
      stopWhen: stepCountIs(3),
    });
    expect([text, asked]).toEqual(["It is sunny.", ["Rome"]]);
  });

  it("embeds more texts than a batch of the model has rows", async () => {
    const triton = newTriton();
    lengths(triton);
    const values = ["a", "bb", "ccc", "dddd", "eeeee"];
    const { embeddings } = await embedMany({
      model: tritonProvider(triton).embeddingModel("lengths"),
      values,
    });
    expect(embeddings).toEqual(values.map(({ length }) => [length, 1]));
  });

  it("ranks texts and objects", async () => {
    const triton = newTriton();
    lengths(triton);
    const model = tritonProvider(triton).rerankingModel("lengths");
    const { ranking } = await rerank({ model, query: "aaaa", documents: ["b", "bbbb", "bb"], topN: 2 });
    expect(ranking.map(({ originalIndex }) => originalIndex)).toEqual([1, 2]);
    expect(ranking[0]!.score).toBeCloseTo(1);
    const { ranking: objects } = await rerank({ model, query: "a", documents: [{ x: 1 }] });
    expect(objects).toHaveLength(1);
  });

  it("has the errors of models that cannot do what is asked", async () => {
    const triton = newTriton();
    lengths(triton);
    bindText(triton, "m", () => say("text"));
    const provider = tritonProvider(triton);
    const embed = (name: string) =>
      outcomeOf(embedMany({ model: provider.embeddingModel(name), values: ["a"] }));
    expect(await embed("m")).toMatch(/model 'm' does not make embeddings/);
    expect(await embed("absent")).toMatch(/'absent'/);
    const wrong = outcomeOf(rerank({ model: provider.rerankingModel("m"), query: "a", documents: ["b"] }));
    expect(await wrong).toMatch(/model 'm': model 'm' does not make embeddings/);
    const text = outcomeOf(generateText({ model: provider("lengths"), prompt: "a", maxRetries: 0 }));
    expect(await text).toMatch(/model 'lengths'/);
  });
});
