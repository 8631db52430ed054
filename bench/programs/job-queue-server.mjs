/*
 * The web server of the design with a job queue: fastify adds a BullMQ job for each request and waits for its result,
 * which `job-queue-worker.mjs` computes. It takes and answers the same bytes as tritonjs.
 */
import { Queue, QueueEvents } from "bullmq";
import { serveWithFastify } from "../support/fastify-infer.mjs";
import { onnxModels } from "../support/onnx-models.mjs";
import { answerCalls, eventLoopDelay, programOptions } from "../support/program.mjs";

const { model, redis } = programOptions();
const connection = { url: redis };
const queue = new Queue(model, { connection });
const events = new QueueEvents(model, { connection });
await events.waitUntilReady();
// Each waiting request listens.
for (const emitter of [queue, events]) emitter.setMaxListeners(0);
// A job that is removed at once could be gone before this process waits for it.
const options = { removeOnComplete: 1000, removeOnFail: 1000 };

const elements = onnxModels[model]().shape.reduce((product, dim) => product * dim, 1);
const url = await serveWithFastify(model, elements, async (row) => {
  const job = await queue.add("infer", { x: row.toString("base64") }, options);
  const { shape, y } = await job.waitUntilFinished(events);
  return { shape, bytes: Buffer.from(y, "base64") };
});

answerCalls({ url: () => url, delay: eventLoopDelay() });
