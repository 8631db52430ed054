import { parseArgs } from "node:util";
import { batch, Triton } from "@tritonjs/core";

/*
 * PyTriton's MyModel: one text and any number of texts in, a score for each of them out. No tensor has a name. A score
 * is the share of the words of a text that the first one also has.
 */

const { values } = parseArgs({ options: { port: { type: "string", default: "8000" } } });

const wordsOf = (text) => text.toLowerCase().match(/\w+/g) ?? [];

function score(text, candidate) {
  const known = new Set(wordsOf(text));
  const words = wordsOf(candidate);
  return words.length === 0 ? 0 : words.filter((word) => known.has(word)).length / words.length;
}

const triton = new Triton({ httpPort: Number(values.port), allowGrpc: false, allowMetrics: false });
triton.bind({
  modelName: "MyModel",
  inputs: [
    { dtype: "BYTES", shape: [1] }, // a text in each sample
    { dtype: "BYTES", shape: [-1] }, // a vector of texts in each sample
  ],
  outputs: [{ dtype: "FP32", shape: [-1] }],
  inferFunc: batch(({ INPUT_1, INPUT_2 }) => {
    const candidates = INPUT_2.toArray();
    return [INPUT_1.toArray().map(([text], row) => candidates[row].map((one) => score(text, one)))];
  }),
  config: { maxBatchSize: 16 },
});
const { addresses } = await triton.serve();
console.log(`MyModel at ${addresses.http.url}`);

process.once("SIGTERM", () => triton.close());
process.once("SIGINT", () => triton.close());
