/*
 * Search by meaning, in one process: an encoder in ONNX makes embeddings of articles and of questions, and a search in
 * memory finds the nearest articles. `npm start -- --serve` serves until Ctrl-C.
 */

import { batch, Triton } from "@tritonjs/core";
import { articles } from "./articles.js";
import { bindEncoder } from "./encoder.js";
import { VectorIndex } from "./vector-index.js";

const serve = process.argv.includes("--serve");
await using triton = new Triton(serve ? {} : { httpPort: 0, metricsPort: 0 });
const { encoder, embed } = bindEncoder(triton);
await triton.ready();

// One request for each article: the batcher joins them by length.
const index = new VectorIndex<string>();
const vectors = await Promise.all(articles.map((text) => embed.inferSample({ text_input: [text] })));
for (const [i, { embedding }] of vectors.entries()) index.add(articles[i]!, embedding.data);
console.log(`${articles.length} articles in ${encoder.statistics().executionCount} batches`);

const search = triton.bind({
  modelName: "search",
  inputs: [{ name: "question", dtype: "BYTES", shape: [1] }],
  outputs: [
    { name: "article", dtype: "BYTES", shape: [3] },
    { name: "score", dtype: "FP32", shape: [3] },
  ],
  inferFunc: batch(async ({ question }) => {
    const questions = await Promise.all(
      question.strings().map((text) => embed.inferSample({ text_input: [text] })),
    );
    const found = questions.map(({ embedding }) => index.search(embedding.data, 3));
    return {
      article: found.map((three) => three.map(({ item }) => item)),
      score: found.map((three) => three.map(({ score }) => score)),
    };
  }),
});
const { addresses } = await triton.serve();

const questions = [
  "I lost my passphrase",
  "where is my package?",
  "i want my money back",
  "when do you close",
];
for (const question of questions) {
  const { article, score } = await search.inferSample({ question: [question] });
  console.log(`${question} -> ${article.strings()[0]} (${score.get(0).toFixed(2)})`);
}

const answer = await fetch(`${addresses.http!.url}/v2/models/search/generate`, {
  method: "POST",
  body: JSON.stringify({ question: "this coupon does not work" }),
});
console.log(`over HTTP -> ${((await answer.json()) as { article: string[] }).article[0]}`);

if (serve) {
  console.log(`serving at ${addresses.http!.url}; Ctrl-C ends`);
  await new Promise((resolve) => process.once("SIGINT", resolve));
}
