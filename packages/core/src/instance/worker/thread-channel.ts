import { Worker } from "node:worker_threads";
import type { OpenChannel } from "./channel.js";
import type { FromWorker } from "./messages.js";

/** A worker thread: shares the memory of this process, so that buffers change hands without a copy. */
export const openThread: OpenChannel = (init, { heapLimitMb }, listener) => {
  const worker = new Worker(new URL("./thread-main.js", import.meta.url), {
    workerData: init,
    name: init.info.instanceName,
    ...(heapLimitMb === undefined ? {} : { resourceLimits: { maxOldGenerationSizeMb: heapLimitMb } }),
  });
  let fault: unknown;
  worker.on("message", (message: FromWorker) => listener.message(message));
  worker.on("error", (error) => {
    fault = error;
  });
  worker.on("exit", (code) => listener.gone(`exited with code ${code}`, fault));
  return {
    details: {},
    post: (message, transfer) => worker.postMessage(message, transfer),
    end: () => void worker.terminate(),
    kill: () => void worker.terminate(),
  };
};
