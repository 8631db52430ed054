import { batch, Triton } from "@tritonjs/core";
import type { BatchingRequest } from "@tritonjs/core/types";

/*
 * Texts of any length in one batch. Short texts are batched with short ones, at most 64 tokens at a time. Each batch is
 * padded to its longest text, with a mask. Each text gets one score for each of its tokens.
 *
 *   npm start
 */

const tokensOf = ({ inputs }: BatchingRequest): number => inputs.tokens!.shape[1]!;

await using triton = new Triton();
const model = triton.bind({
  modelName: "attention",
  inputs: [
    { name: "tokens", dtype: "INT64", shape: [-1] },
    // The server computes the mask for each batch; clients do not send it. 1 for a token, 0 for padding.
    {
      name: "mask",
      dtype: "FP32",
      shape: [-1],
      batchInput: { kind: "PADDING_MASK", sourceInput: "tokens" },
    },
  ],
  outputs: [
    // As long as the tokens; the server cuts it to the length of each text.
    {
      name: "weights",
      dtype: "FP32",
      shape: [-1],
      batchOutput: { kind: "CUT_TO_INPUT_SHAPE", sourceInput: "tokens" },
    },
    { name: "score", dtype: "FP32", shape: [1] },
  ],
  inferFunc: batch(({ tokens, mask }) => {
    const [rows, length] = tokens.shape as [number, number];
    console.log(`a batch of ${rows} texts, each as ${length} tokens`);
    const weights = new Float32Array(rows * length);
    const score = new Float32Array(rows);
    for (let row = 0; row < rows; row++) {
      // A softmax over the tokens of the text: padding gets no weight, whatever its value.
      const powers = Array.from(
        { length },
        (_, i) => mask.get(row, i) * Math.exp(Number(tokens.get(row, i)) / 10),
      );
      const sum = powers.reduce((total, power) => total + power, 0);
      for (let i = 0; i < length; i++) {
        weights[row * length + i] = powers[i]! / sum;
        score[row]! += weights[row * length + i]! * Number(tokens.get(row, i));
      }
    }
    return { weights, score };
  }),
  config: {
    maxBatchSize: 16,
    batcher: {
      batchBy: (request) => 8 * Math.ceil(tokensOf(request) / 8), // up to 8 tokens, up to 16, ...
      cost: tokensOf,
      maxBatchCost: 64,
      pad: { tokens: 0 },
      maxQueueDelayMicroseconds: 1000,
    },
  },
});
await model.ready();

const text = (length: number, first: number) => Array.from({ length }, (_, i) => first + i);
const texts = [3, 30, 5, 7, 25, 2, 32, 8].map((length, i) => text(length, i));
const together = await Promise.all(texts.map((tokens) => model.inferSample({ tokens })));

let same = true;
for (const [i, tokens] of texts.entries()) {
  const alone = await model.inferSample({ tokens });
  const { weights, score } = together[i]!;
  same &&= weights.shape[0] === tokens.length;
  same &&= Math.abs(score.get(0) - alone.score.get(0)) < 1e-4;
  console.log(`${tokens.length} tokens: ${weights.shape[0]} weights, score ${score.get(0).toFixed(3)}`);
}
console.log(`each answer is that of the text alone: ${same ? "yes" : "no"}`);
const { recentCuts } = model.queue();
console.log(
  `why batches were cut: ${[...new Set(recentCuts.map(({ reason }) => reason))].sort().join(", ")}`,
);
