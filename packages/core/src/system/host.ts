/*
 * The host's services for the serving core, in Node's form. The files that bind, batch, schedule, stream and count import
 * it as `#host`, and nothing of Node otherwise. `package.json` maps the name to `host-web.ts` where there is no Node.
 */
export { AsyncLocalStorage, AsyncResource } from "node:async_hooks";
export { spawnSync } from "node:child_process";
export { createHash, randomFillSync } from "node:crypto";
export { channel, subscribe, tracingChannel, unsubscribe } from "node:diagnostics_channel";
export { readdirSync } from "node:fs";
export { createRequire } from "node:module";
export { availableParallelism } from "node:os";
export { join } from "node:path";
export { performance } from "node:perf_hooks";
export { default as process } from "node:process";
export { clearTimeout, setImmediate, setInterval, setTimeout } from "node:timers";
export { setImmediate as untilNextTurn } from "node:timers/promises";
export { fileURLToPath, pathToFileURL } from "node:url";
export { getHeapStatistics } from "node:v8";
export { dataFilesOf, readFileNow } from "./files.js";

/** Orders bytes as `Buffer.compare` does. */
export const compareBytes: (a: Uint8Array, b: Uint8Array) => number = Buffer.compare;

/** Bytes as hexadecimal digits. */
export function hexOf({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString("hex");
}

/** A timer that does not keep the process alive. */
export function setQuietTimeout(run: () => void, delayMs: number): NodeJS.Timeout {
  return setTimeout(run, delayMs).unref();
}
