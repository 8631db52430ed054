import { workerData } from "node:worker_threads";
import type { ModelDescription } from "../instance/backend.js";
import { packError, type WireError } from "../worker/messages.js";
import { guardNativeCalls } from "../worker/native-calls.js";
import type { DescriptionTask } from "./describe-in-worker.js";

/* Program of a worker that describes a model while the thread that started it blocks. */

const { entry, data, port, done, nativeCalls } = workerData as DescriptionTask;
guardNativeCalls(nativeCalls);
port.postMessage(await describe().catch((error): WireError => packError(error)));
Atomics.store(done, 0, 1);
Atomics.notify(done, 0);

async function describe(): Promise<ModelDescription> {
  const module: { describe(data: unknown): Promise<ModelDescription> } = await import(
    /* webpackIgnore: true */ /* turbopackIgnore: true */ /* @vite-ignore */ entry
  );
  return module.describe(data);
}
