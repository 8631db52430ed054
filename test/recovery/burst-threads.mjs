/*
 * Prints the bytes that threads keep after a burst of buffers each, as JSON. With the argument `limited`, the process
 * has the limits of `tritonjs serve`.
 */
import { once } from "node:events";
import { isMainThread, parentPort, Worker } from "node:worker_threads";
import { limitMalloc } from "@tritonjs/cli/process-memory";

const THREADS = 6;
const MIB = 2 ** 20;

/** A large buffer that is freed, and then many small ones that are filled, dropped and collected. */
function burst() {
  Buffer.allocUnsafeSlow(16 * MIB).fill(1);
  globalThis.gc();
  globalThis.gc();
  let kept = Array.from({ length: 24 }, () => Buffer.allocUnsafeSlow(MIB).fill(1));
  kept = undefined;
  globalThis.gc();
  globalThis.gc();
  return kept;
}

if (isMainThread) {
  const limited = process.argv[2] === "limited" && limitMalloc({});
  const threads = Array.from({ length: THREADS }, () => new Worker(new URL(import.meta.url)));
  await Promise.all(threads.map((thread) => once(thread, "message")));
  const before = process.memoryUsage.rss();
  for (const thread of threads) {
    thread.postMessage("burst");
    await once(thread, "message");
  }
  console.log(JSON.stringify({ limited, kept: process.memoryUsage.rss() - before }));
  process.exit();
} else {
  parentPort.on("message", () => {
    burst();
    parentPort.postMessage("done");
  });
  parentPort.postMessage("ready");
}
