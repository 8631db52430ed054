import { type MessagePort, workerData } from "node:worker_threads";
import type { ModelDescription } from "../../instance/backend.js";
import { packError, type WireError } from "../../instance/worker/messages.js";
import { openModel } from "./open-model.js";
import { openRuntime } from "./open-runtime.js";
import type { TensorflowData } from "./tensorflow-model.js";

/* The program of a worker that describes a model to a thread that stands still meanwhile. */

/** What it is started with. */
export interface SyncDescription {
  readonly data: TensorflowData;
  readonly port: MessagePort;
  /** Becomes 1 when the answer is in the port. */
  readonly done: Int32Array;
}

export type SyncAnswer = ModelDescription | WireError;

const { data, port, done } = workerData as SyncDescription;

async function answer(): Promise<SyncAnswer> {
  try {
    return (await openModel(await openRuntime(data.runtime, undefined), data)).description;
  } catch (error) {
    return packError(error);
  }
}

port.postMessage(await answer());
Atomics.store(done, 0, 1);
Atomics.notify(done, 0);
