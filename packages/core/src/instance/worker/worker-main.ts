import { parentPort, workerData } from "node:worker_threads";
import { RESCHEDULE } from "../../callable/reschedule.js";
import { TritonError } from "../../errors/triton-error.js";
import { CallsToModels } from "./calls-to-models.js";
import {
  type FromWorker,
  packError,
  packTensors,
  type ToWorker,
  unpackTensors,
  type WireResult,
  type WorkerInit,
} from "./messages.js";
import type { WorkerEntry, WorkerModel } from "./worker-model.js";
import { WorkerStream } from "./worker-stream.js";

/* The program of a worker thread: loads the entry module it is told to, then runs one batch at a time. */

const port = parentPort!;
const { entry, data, info } = workerData as WorkerInit;
const decoupled = info.modelConfig.modelTransactionPolicy?.decoupled === true;

const send = (message: FromWorker, transfer: ArrayBuffer[] = []) => port.postMessage(message, transfer);

const calls = new CallsToModels(send);

/** Batches with open requests: the one that runs, and those of a decoupled model that are still answered. */
const streams = new Map<number, WorkerStream>();

async function execute(model: WorkerModel, message: Extract<ToWorker, { type: "execute" }>): Promise<void> {
  for (const [batch, stream] of streams) if (!decoupled || !stream.live) streams.delete(batch);
  const stream = new WorkerStream(message.batch, message.requests.length, send);
  streams.set(message.batch, stream);
  const requests = message.requests.map((request, i) => ({ ...request, signal: stream.signal(i) }));
  const transfer: ArrayBuffer[] = [];
  try {
    const models = calls.of(message.batch);
    const batch = {
      inputs: unpackTensors(message.inputs),
      requests,
      models,
      ...(decoupled ? { stream } : {}),
    };
    const result = await model.execute(batch);
    if (result === undefined) {
      send({ type: "returned" });
    } else if ("merged" in result) {
      send({ type: "merged", outputs: packTensors(result.merged, transfer, model.ownsOutputs) }, transfer);
    } else {
      const results = result.separate.map((one): WireResult => {
        if (one === RESCHEDULE) return "again";
        return TritonError.is(one) ? packError(one) : packTensors(one, transfer, false);
      });
      send({ type: "separate", results }, transfer);
    }
  } catch (thrown) {
    send({ type: "error", error: packError(thrown) });
  }
}

try {
  const model = await ((await import(entry)) as WorkerEntry).load(data, info, {
    warn: (message) => send({ type: "warning", message }),
  });
  port.on("message", (message: ToWorker) => {
    if (message.type === "execute") void execute(model, message);
    else if (message.type === "cancel") streams.get(message.batch)?.cancel(message.index);
    else if (message.type === "answer") calls.answer(message);
    else if (message.type === "taken") streams.get(message.batch)?.taken(message.index);
    else void Promise.resolve(model.close?.()).finally(() => port.close());
  });
  send({ type: "ready", details: model.details ?? {} });
} catch (thrown) {
  send({ type: "failed", error: packError(thrown) });
  port.close();
}
