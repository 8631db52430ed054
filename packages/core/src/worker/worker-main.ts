import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { packError, type ToWorker } from "./messages.js";
import { guardNativeCalls } from "./native-calls.js";
import type { ProcessFault, ThreadData } from "./open-worker.js";
import { serveModels } from "./serve-models.js";

/* The program of a worker: a thread, or a child process. */

if (isMainThread) serveInProcess();
else serveInThread();

function serveInThread(): void {
  const port = parentPort!;
  guardNativeCalls((workerData as ThreadData).nativeCalls);
  serveModels({
    post: (message, transfer) => port.postMessage(message, transfer),
    onMessage: (listener) => void port.on("message", (message: ToWorker) => listener(message)),
    // Handles that the model left open would keep the thread alive.
    close: exitWhenWritten,
  });
}

/**
 * A process ends with its parent: the channel closes when the parent is gone. A watchdog thread covers models that never
 * give the event loop a turn to notice it.
 */
function serveInProcess(): void {
  const send = process.send!.bind(process);
  /** The channel belongs to the library: messages of the model would be taken for answers. */
  delete process.send;
  process.removeAllListeners("message");

  process.on("disconnect", () => process.exit());
  // A terminal signals the whole process group. The parent decides when this process ends.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
  // The model's output is lost when nobody reads it, or when its disk is full. The process must not end for it.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
  process.on("uncaughtExceptionMonitor", (error) => {
    const fault: ProcessFault = { type: "fault", error: packError(error) };
    send(fault);
  });

  new Worker(new URL("./parent-watchdog.js", import.meta.url), {
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1 },
  }).unref();

  serveModels({
    post: (message) => void send(message, undefined, undefined, () => {}),
    onMessage: (listener) => void process.on("message", (message: ToWorker) => listener(message)),
    close: exitWhenWritten,
  });
}

/** Output of the model may still be buffered until it is read. */
function exitWhenWritten(): void {
  process.stdout.write("", () => process.stderr.write("", () => process.exit()));
}
