/*
 * Search by meaning, in one process: a network of TensorFlow.js makes embeddings of articles and of questions, and a
 * search in memory finds the nearest articles. `npm start -- --serve` serves until Ctrl-C.
 */

import { batch, Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";
import { openai } from "@tritonjs/llm/openai";
import { articles } from "./articles.js";
import { bindEncoder } from "./encoder.js";
import { VectorIndex } from "./vector-index.js";

const serve = process.argv.includes("--serve");
await using triton = new Triton();
const { encoder, embed } = bindEncoder(triton);
await triton.ready();

/** The embedding of a text. */
async function vectorOf(text: string): Promise<Float32Array> {
  const { embedding } = await embed.inferSample({ text_input: [text] });
  return embedding.data;
}

/** Runs a task, and says how often it ran the network and how long it took. */
async function measure<T>(name: string, task: () => Promise<T>): Promise<T> {
  const before = encoder.statistics().executionCount;
  const begin = performance.now();
  const result = await task();
  const ms = performance.now() - begin;
  console.log(`${name}: ${encoder.statistics().executionCount - before} runs, ${ms.toFixed(0)} ms`);
  return result;
}

await vectorOf("The first run prepares the network.");
const alone: Float32Array[] = [];
await measure("articles one after the other", async () => {
  for (const text of articles) alone.push(await vectorOf(text));
});
// One request for each article: the batcher joins them.
const together = await measure("articles at the same time", () => Promise.all(articles.map(vectorOf)));
const same = together.every((vector, i) =>
  vector.every((value, j) => Math.abs(value - alone[i]![j]!) < 1e-5),
);
console.log(`the same embeddings: ${same ? "yes" : "no"}`);

const index = new VectorIndex<string>();
for (const [i, vector] of together.entries()) index.add(articles[i]!, vector);
const search = triton.bind({
  modelName: "search",
  inputs: [{ name: "question", dtype: "BYTES", shape: [1] }],
  outputs: [
    { name: "article", dtype: "BYTES", shape: [3] },
    { name: "score", dtype: "FP32", shape: [3] },
  ],
  inferFunc: batch(async ({ question }) => {
    const vectors = await Promise.all(question.strings().map(vectorOf));
    const found = vectors.map((vector) => index.search(vector, 3));
    return {
      article: found.map((three) => three.map(({ item }) => item)),
      score: found.map((three) => three.map(({ score }) => score)),
    };
  }),
});
const { addresses } = await triton.serve({
  frontends: serve ? [http(), openai()] : [http({ port: 0 }), openai({ port: 0 })],
});

const questions = ["I forgot my login", "where is my package?", "i want my money back", "when are you open?"];
for (const question of questions) {
  const { article, score } = await search.inferSample({ question: [question] });
  console.log(`${question} -> ${article.strings()[0]} (${score.get(0).toFixed(2)})`);
}

/** Posts a request and returns the answer. */
async function post<T>(url: string, body: object): Promise<T> {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  return (await answer.json()) as T;
}

const generate = `${addresses.http!.url}/v2/models/search/generate`;
const { article } = await post<{ article: string[] }>(generate, { question: "this coupon does not work" });
console.log(`over HTTP -> ${article[0]}`);

const { data } = await post<{ data: { embedding: number[] }[] }>(`${addresses.openai!.url}/v1/embeddings`, {
  model: "embed",
  input: ["The parcel did not arrive", "My shipment is late"],
});
const sizes = data.map(({ embedding }) => embedding.length).join(" and ");
console.log(`OpenAI's embeddings -> ${sizes} numbers`);

if (serve) {
  console.log(`serving at ${addresses.http!.url} and ${addresses.openai!.url}; Ctrl-C ends`);
  await new Promise((resolve) => process.once("SIGINT", resolve));
}
