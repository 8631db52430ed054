import { Worker } from "node:worker_threads";
import { packError, type ToWorker } from "./messages.js";
import type { ProcessFault } from "./process-channel.js";
import { serveModels } from "./serve-models.js";

/*
 * The program of a child process. It ends with its parent: the channel closes when the parent is gone, and a thread
 * looks after the case that the model never gives the event loop a turn to hear of it.
 */

const send = process.send!.bind(process);
/** The channel is the library's: what the model sends would be taken for an answer. */
delete process.send;
process.removeAllListeners("message");

process.on("disconnect", () => process.exit());
// A terminal signals the whole group of processes. When this one ends is for the parent to say.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
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
  close: () => {
    // What the model wrote may wait for whoever reads it.
    process.stdout.write("", () => process.stderr.write("", () => process.exit()));
  },
});
