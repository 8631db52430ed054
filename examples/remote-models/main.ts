import { remote } from "@tritonjs/client/remote";
import { batch, Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";

/*
 * A model whose batches run on two other servers. One of them goes away, and nobody notices.
 *
 *   npm start
 */

/** A server with the model. In real life, it is another machine. */
async function openReplica() {
  const triton = new Triton();
  const model = triton.bind({
    modelName: "double",
    inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
    inferFunc: batch(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
    config: { maxBatchSize: 4 },
  });
  const { addresses } = await triton.serve({ frontends: [grpc({ port: 0 })] });
  return { triton, model, url: `grpc://${addresses.grpc!.url}` };
}

const [first, second] = [await openReplica(), await openReplica()];
await using triton = new Triton();
const double = triton.bind({
  modelName: "double",
  // A request may run twice, so a batch whose server disappears goes to the other one.
  inferFunc: await remote({ urls: [first.url, second.url], model: "double", idempotent: true }),
});

/** Sends 40 requests at once and counts the right answers. */
async function rightAnswers(): Promise<number> {
  const values = Array.from({ length: 40 }, (_, i) => i);
  const answers = await Promise.all(values.map((value) => double.inferSample({ x: [value] })));
  return answers.filter(({ y }, i) => y!.get(0) === 2 * i).length;
}

console.log(`${await rightAnswers()} of 40 answers with two servers`);
const rows = [first, second].map(({ model }) => model.statistics().inferenceCount);
console.log(`both servers had some: ${rows.every((count) => count > 0)}`);
await first.triton.close();
console.log(`${await rightAnswers()} of 40 answers with one server`);
await triton.close();
await second.triton.close();
