import { parentPort, workerData } from "node:worker_threads";
import type { ToWorker } from "./messages.js";
import { guardNativeCalls } from "./native-calls.js";
import type { ThreadData } from "./open-worker.js";
import { serveModels } from "./serve-models.js";

/* The program of a worker thread. */

const port = parentPort!;
guardNativeCalls((workerData as ThreadData).nativeCalls);

serveModels({
  post: (message, transfer) => port.postMessage(message, transfer),
  onMessage: (listener) => void port.on("message", (message: ToWorker) => listener(message)),
  close: () => {
    port.close();
    // Output of the model may still be buffered until it is read; handles that it left open keep the thread alive.
    process.stdout.write("", () => process.stderr.write("", () => process.exit()));
  },
});
