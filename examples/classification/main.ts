import { batch, Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";

/*
 * The best classes of a model, with their labels, instead of its scores.
 *
 *   npm start
 */

await using triton = new Triton();
triton.bind({
  modelName: "mood",
  inputs: [{ name: "text", dtype: "BYTES", shape: [1] }],
  outputs: [{ name: "scores", dtype: "FP32", shape: [3], labels: ["happy", "sad", "calm"] }],
  inferFunc: batch(({ text }) => ({
    scores: text
      .strings()
      .map((line) => [/!/g, /\.\.\./g, /\bsea\b/g].map((sign) => line.split(sign).length - 1)),
  })),
});
const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });

const answer = await fetch(`${addresses.http!.url}/v2/models/mood/infer`, {
  method: "POST",
  body: JSON.stringify({
    inputs: [
      {
        name: "text",
        datatype: "BYTES",
        shape: [2, 1],
        data: ["The sea! Come!", "Alone by the sea... again..."],
      },
    ],
    outputs: [{ name: "scores", parameters: { classification: 2 } }],
  }),
});
const { outputs } = (await answer.json()) as { outputs: { shape: number[]; data: string[] }[] };
const { shape, data } = outputs[0]!;
console.log(`shape [${shape}]`);
console.log(`score:class:label ${data.slice(0, 2).join(" ")}`);
console.log(`score:class:label ${data.slice(2).join(" ")}`);
