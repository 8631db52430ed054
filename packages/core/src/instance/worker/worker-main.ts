import { parentPort, workerData } from "node:worker_threads";
import { TritonError } from "../../errors/triton-error.js";
import {
  type FromWorker,
  packError,
  packTensors,
  type ToWorker,
  unpackTensors,
  type WireTensor,
  type WorkerInit,
} from "./messages.js";
import type { WorkerEntry, WorkerModel } from "./worker-model.js";

/* The program of a worker thread: loads the entry module it is told to, then runs one batch at a time. */

const port = parentPort!;
const { entry, data, info } = workerData as WorkerInit;

const send = (message: FromWorker, transfer: ArrayBuffer[] = []) => port.postMessage(message, transfer);

/** Signals of the batch at hand. */
let controllers: AbortController[] = [];

async function execute(model: WorkerModel, message: Extract<ToWorker, { type: "execute" }>): Promise<void> {
  controllers = message.requests.map(() => new AbortController());
  const requests = message.requests.map((request, i) => ({ ...request, signal: controllers[i]!.signal }));
  const transfer: ArrayBuffer[] = [];
  try {
    const result = await model.execute({ inputs: unpackTensors(message.inputs), requests });
    if ("merged" in result) {
      send({ type: "merged", outputs: packTensors(result.merged, transfer, model.ownsOutputs) }, transfer);
      return;
    }
    const results = result.separate.map((one): readonly WireTensor[] | ReturnType<typeof packError> =>
      TritonError.is(one) ? packError(one) : packTensors(one, transfer, false),
    );
    send({ type: "separate", results }, transfer);
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
    else if (message.type === "cancel") controllers[message.index]?.abort();
    else void Promise.resolve(model.close?.()).finally(() => port.close());
  });
  send({ type: "ready", details: model.details ?? {} });
} catch (thrown) {
  send({ type: "failed", error: packError(thrown) });
  port.close();
}
