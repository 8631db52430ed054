import { batch, Triton, TritonError } from "@tritonjs/core";

/*
 * Requests of people run before requests of batch jobs, and no request waits longer than its limit.
 *
 *   npm start
 */

await using triton = new Triton();
let busy: (() => void) | undefined;
const model = triton.bind({
  modelName: "answers",
  inputs: [{ name: "question", dtype: "INT32", shape: [1] }],
  outputs: [{ name: "answer", dtype: "INT32", shape: [1] }],
  inferFunc: batch(async ({ question }) => {
    console.log(`running ${[...question.data].join(", ")}`);
    // The first batch keeps the model busy until all other requests have arrived.
    if (question.data[0] === 0)
      await new Promise<void>((resolve) => {
        busy = resolve;
      });
    return { answer: question };
  }),
  config: {
    maxBatchSize: 2,
    batcher: {
      priorityLevels: 2, // 1 is the highest
      defaultPriorityLevel: 2,
      defaultQueuePolicy: { maxQueueSize: 3 },
      priorityQueuePolicy: { 1: { defaultTimeoutMicroseconds: 200_000, timeoutAction: "REJECT" } },
    },
  },
});
await model.ready();

const ask = (question: number, priority = 0) =>
  model.inferSample({ question: [question] }, { priority }).then(
    ({ answer }) => `answered ${answer.get(0)}`,
    (error: unknown) => `refused ${question}: ${TritonError.from(error).code}`,
  );

const first = ask(0);
while (busy === undefined) await new Promise((resolve) => setImmediate(resolve));
// Level 2 has room for three requests, so the fourth is refused. The requests of level 1 arrive last and run first.
const batches = [1, 2, 3, 4].map((question) => ask(question));
const people = [101, 102].map((question) => ask(question, 1));
await new Promise((resolve) => setImmediate(resolve));
busy();
for (const outcome of await Promise.all([first, ...batches, ...people])) console.log(outcome);
