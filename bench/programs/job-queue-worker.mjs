/* The worker of the design with a job queue: takes BullMQ jobs one by one and runs the model. */
import { Worker } from "bullmq";
import { openSession } from "../support/onnx-session.mjs";
import { answerCalls, programOptions } from "../support/program.mjs";

const { model, redis } = programOptions();
const { run } = await openSession(model);
const worker = new Worker(
  model,
  async ({ data }) => {
    const { shape, bytes } = await run(Buffer.from(data.x, "base64"));
    return { shape, y: bytes.toString("base64") };
  },
  { connection: { url: redis } },
);
await worker.waitUntilReady();

answerCalls({});
