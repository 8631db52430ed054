import { batch, sample, type Triton } from "@tritonjs/core";
import { describe, expect, it } from "vitest";
import { newTriton, post, serveOpenAi } from "../support/openai-server.js";

/** Embeds a text as its length, and 1. */
function bindBatched(triton: Triton, sizes: number[]): void {
  triton.bind({
    modelName: "texts",
    inputs: [{ name: "query", dtype: "BYTES", shape: [1] }],
    outputs: [{ name: "embedding", dtype: "FP32", shape: [2] }],
    config: { maxBatchSize: 4 },
    inferFunc: batch(({ query }) => {
      const texts = query.strings();
      sizes.push(texts.length);
      return { embedding: texts.map((text) => [text.length, 1]) };
    }),
  });
}

async function serve() {
  const triton = newTriton();
  const sizes: number[] = [];
  bindBatched(triton, sizes);
  triton.bind({
    modelName: "tokens",
    inputs: [
      { name: "input_ids", dtype: "INT64", shape: [-1] },
      { name: "attention_mask", dtype: "INT64", shape: [-1] },
    ],
    outputs: [{ name: "vector", dtype: "FP32", shape: [2] }],
    config: { batching: false },
    inferFunc: sample(({ input_ids, attention_mask }) => {
      const masked = attention_mask.data.reduce((sum, value) => sum + value, 0n);
      return { vector: [input_ids.size, Number(masked)] };
    }),
  });
  triton.bind({
    modelName: "vllm",
    inputs: [{ name: "embedding_request", dtype: "BYTES", shape: [1], optional: true }],
    outputs: [
      { name: "text_output", dtype: "BYTES", shape: [1] },
      { name: "num_input_tokens", dtype: "UINT32", shape: [1] },
    ],
    config: { batching: false },
    inferFunc: sample(({ embedding_request }) => {
      const { input, pooling_params } = JSON.parse(embedding_request!.text(0));
      const vector = [input.length, pooling_params?.dimensions[0] ?? 0];
      return { text_output: [JSON.stringify(vector)], num_input_tokens: [5] };
    }),
  });
  const url = await serveOpenAi(triton);
  const embed = (body: object) => post(`${url}/v1/embeddings`, { model: "texts", ...body });
  return { embed, sizes };
}

describe("POST /v1/embeddings", () => {
  it("answers with OpenAI's object", async () => {
    const { embed } = await serve();
    expect(await (await embed({ input: "four" })).json()).toEqual({
      object: "list",
      data: [{ object: "embedding", index: 0, embedding: [4, 1] }],
      model: "texts",
      usage: null,
    });
  });

  it("fills batches of the model with a list of texts, and keeps their order", async () => {
    const { embed, sizes } = await serve();
    const answer = await (await embed({ input: ["a", "bb", "ccc", "dddd", "eeeee"] })).json();
    const { data } = answer as { data: { index: number; embedding: number[] }[] };
    expect(data.map(({ embedding }) => embedding[0])).toEqual([1, 2, 3, 4, 5]);
    expect(data.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4]);
    expect(sizes.sort()).toEqual([1, 4]);
  });

  it("writes base64 of little-endian FP32", async () => {
    const { embed } = await serve();
    const answer = await (await embed({ input: "four", encoding_format: "base64" })).json();
    const { data } = answer as { data: { embedding: string }[] };
    const bytes = Buffer.from(data[0]!.embedding, "base64");
    expect([bytes.readFloatLE(0), bytes.readFloatLE(4), bytes.length]).toEqual([4, 1, 8]);
  });

  it("cuts embeddings to dimensions, with length 1", async () => {
    const { embed } = await serve();
    expect(await (await embed({ input: "four", dimensions: 1 })).json()).toMatchObject({
      data: [{ embedding: [1] }],
    });
    const refused = await embed({ input: "four", dimensions: 3 });
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ error: { param: "dimensions" } });
  });

  it("passes tokens to a model that takes them, with its mask", async () => {
    const { embed } = await serve();
    const model = "tokens";
    expect(await (await embed({ model, input: [7, 8, 9] })).json()).toMatchObject({
      data: [{ embedding: [3, 3] }],
    });
    expect(await (await embed({ model, input: [[7], [8, 9]] })).json()).toMatchObject({
      data: [{ embedding: [1, 1] }, { embedding: [2, 2] }],
    });
  });

  it("calls a model of vLLM as it wants to be called", async () => {
    const { embed } = await serve();
    const answer = await (await embed({ model: "vllm", input: ["four", [1, 2, 3]], dimensions: 64 })).json();
    expect(answer).toMatchObject({
      data: [{ embedding: [4, 64] }, { embedding: [3, 64] }],
      usage: { prompt_tokens: 10, total_tokens: 10 },
    });
  });

  it.each([
    ["texts", [1, 2], "unsupported_value"],
    ["tokens", "text", "unsupported_value"],
    ["texts", [], "empty_array"],
    ["texts", "", "invalid_value"],
    ["texts", [[]], "empty_array"],
    ["texts", [1.5], "invalid_type"],
    ["texts", 7, "invalid_type"],
    ["texts", undefined, "missing_required_parameter"],
  ])("refuses for model %s the input %j", async (model, input, code) => {
    const { embed } = await serve();
    const response = await embed({ model, input });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { param: "input", code } });
  });
});
