/*
 * A model that waits 20 ms for each batch of at most 8 rows, behind a bounded queue, over HTTP and gRPC. It needs little
 * CPU time, so the client finds the machine free: the figures are those of the scheduler and the frontends.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { answerCalls, programOptions } from "../support/program.mjs";
import { importOf } from "../support/tree.mjs";

const { tree, batcher } = programOptions();
const { batch, Triton } = await importOf(tree, "core");
const { http } = await importOf(tree, "http");
const { grpc } = await importOf(tree, "grpc");

const triton = new Triton();
const model = triton.bind({
  modelName: "slow",
  inputs: [{ name: "x", dtype: "FP32", shape: [64] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [64] }],
  inferFunc: batch(async ({ x }) => {
    await sleep(20);
    return { y: x };
  }),
  config: { maxBatchSize: 8, batcher },
});
const { addresses } = await triton.serve({ frontends: [http({ port: 0 }), grpc({ port: 0 })] });

/** Answers a second with three batches in flight. */
async function capacity(seconds) {
  const x = new Float32Array(64);
  const start = performance.now();
  const end = start + seconds * 1000;
  let answers = 0;
  const client = async () => {
    while (performance.now() < end) {
      // A busy machine lets requests expire in the queue.
      const isAnswered = await model.inferSample({ x }).then(
        () => true,
        () => false,
      );
      if (isAnswered) answers++;
    }
  };
  await Promise.all(Array.from({ length: 24 }, client));
  return (answers * 1000) / (performance.now() - start);
}

answerCalls({ urls: () => ({ http: addresses.http.url, grpc: addresses.grpc.url }), capacity });
