import { batch } from "@tritonjs/core";
import { expect, it } from "vitest";
import { newTriton, post, serveOpenAi } from "../support/openai-server.js";

async function serve() {
  const triton = newTriton();
  const sizes: number[] = [];
  triton.bind({
    modelName: "pairs",
    inputs: [
      { name: "query", dtype: "BYTES", shape: [1] },
      { name: "document", dtype: "BYTES", shape: [1] },
    ],
    outputs: [{ name: "score", dtype: "FP32", shape: [1] }],
    config: { maxBatchSize: 2 },
    // Letters that both texts have.
    inferFunc: batch(({ query, document }) => {
      const queries = query.strings();
      sizes.push(queries.length);
      const shared = (a: string, b: string) => [...a].filter((letter) => b.includes(letter)).length;
      return { score: document.strings().map((text, i) => [shared(queries[i]!, text)]) };
    }),
  });
  triton.bind({
    modelName: "vectors",
    inputs: [{ name: "text_input", dtype: "BYTES", shape: [1] }],
    outputs: [{ name: "embedding", dtype: "FP32", shape: [2] }],
    config: { maxBatchSize: 8 },
    inferFunc: batch(({ text_input }) => ({
      embedding: text_input.strings().map((text) => [text.includes("a") ? 1 : 0, text.includes("b") ? 1 : 0]),
    })),
  });
  const url = await serveOpenAi(triton);
  return { sizes, send: (path: string, body: object) => post(`${url}/v1/${path}`, body) };
}

it("a cross-encoder ranks documents in batches, the best first", async () => {
  const { send, sizes } = await serve();
  const documents = ["xyz", { text: "abc" }, "ab"];
  expect(await (await send("rerank", { model: "pairs", query: "abc", documents })).json()).toEqual({
    id: expect.stringMatching(/^rerank-/),
    model: "pairs",
    usage: { total_tokens: null },
    results: [
      { index: 1, document: { text: "abc" }, relevance_score: 3 },
      { index: 2, document: { text: "ab" }, relevance_score: 2 },
      { index: 0, document: { text: "xyz" }, relevance_score: 0 },
    ],
  });
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(3);
  const first = { model: "pairs", query: "abc", documents, top_n: 1, return_documents: false };
  expect(await (await send("rerank", first)).json()).toMatchObject({
    results: [{ index: 1, relevance_score: 3 }],
  });
});

it("scores one text against several, or texts in pairs", async () => {
  const { send } = await serve();
  const scores = async (body: object) => {
    const { data } = (await (await send("score", body)).json()) as { data: { score: number }[] };
    return data.map(({ score }) => score);
  };
  expect(await scores({ model: "pairs", text_1: "ab", text_2: ["a", "x"] })).toEqual([1, 0]);
  expect(await scores({ model: "pairs", text_1: ["ab", "x"], text_2: ["ab", "x"] })).toEqual([2, 1]);
  expect(await scores({ model: "pairs", text_1: "a", text_2: "a" })).toEqual([1]);
});

it("an embedding model scores by the cosine of its embeddings", async () => {
  const { send } = await serve();
  const body = { model: "vectors", query: "a", documents: ["b", "a", "a b"] };
  const { results } = (await (await send("rerank", body)).json()) as {
    results: { index: number; relevance_score: number }[];
  };
  expect(results.map(({ index }) => index)).toEqual([1, 2, 0]);
  expect(results.map((one) => one.relevance_score)[1]).toBeCloseTo(Math.SQRT1_2, 5);
});

it.each([
  ["rerank", { model: "pairs", documents: ["a"] }, "query"],
  ["rerank", { model: "pairs", query: "a", documents: [] }, "documents"],
  ["rerank", { model: "pairs", query: "a", documents: [7] }, "documents"],
  ["score", { model: "pairs", text_1: ["a", "b"], text_2: ["a"] }, "text_2"],
  ["score", { model: "none", text_1: "a", text_2: "a" }, "model"],
] as const)("%s refuses %j and names the field", async (path, body, param) => {
  const { send } = await serve();
  const refused = await send(path, body);
  expect(await refused.json()).toMatchObject({ error: { param, type: "invalid_request_error" } });
});
