import { Worker } from "node:worker_threads";
import type { OpenChannel } from "./channel.js";
import type { FromWorker, ToWorker } from "./messages.js";

/** A worker thread: shares the memory of this process, so that buffers change hands without a copy. */
export const openThread: OpenChannel = (init, { heapLimitMb }, listener) => {
  const worker = new Worker(new URL("./thread-main.js", import.meta.url), {
    workerData: init,
    name: init.info.instanceName,
    ...(heapLimitMb === undefined ? {} : { resourceLimits: { maxOldGenerationSizeMb: heapLimitMb } }),
  });
  let fault: unknown;
  let patience: NodeJS.Timeout | undefined;
  worker.on("message", (message: FromWorker) => listener.message(message));
  worker.on("error", (error) => {
    fault = error;
  });
  worker.on("exit", (code) => {
    clearTimeout(patience);
    listener.gone(`exited with code ${code}`, fault);
  });
  return {
    details: {},
    post: (message, transfer) => worker.postMessage(message, transfer),
    end: (closeWithinMs) => {
      if (closeWithinMs === undefined) {
        void worker.terminate();
        return;
      }
      worker.postMessage({ type: "stop" } satisfies ToWorker);
      patience = setTimeout(() => void worker.terminate(), closeWithinMs);
    },
    kill: () => void worker.terminate(),
  };
};
