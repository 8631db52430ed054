/*
 * The host's services for the serving core, where there is only the web platform: pages, web workers, workers at the edge.
 * It exports what `host.ts` does. A function that the platform has no equivalent of throws, and names what is missing.
 */
import { errorFor } from "@tritonjs/protocol";

type Host = typeof import("./host.js");

/** The web platform's timers and its events. The types of this package are Node's. */
const web = globalThis as unknown as {
  setTimeout(run: () => void, delayMs: number): number;
  clearTimeout(handle: number): void;
  setInterval(run: () => void, delayMs: number): number;
  clearInterval(handle: number): void;
  readonly performance: { now(): number };
  readonly crypto: { getRandomValues(bytes: Uint8Array): Uint8Array };
  readonly console: { warn(message: unknown): void };
};

function missing(what: string): () => never {
  return () => {
    const text = `${what}: expected Node.js, Bun or Deno, got a host with the web platform alone`;
    throw errorFor("PLATFORM_NOT_SUPPORTED", text);
  };
}

/** A request has no context of its caller here. */
export const AsyncResource = class {
  runInAsyncScope<T>(run: () => T): T {
    return run();
  }
} as unknown as Host["AsyncResource"];

export const AsyncLocalStorage = class {
  run<T>(_store: unknown, run: () => T): T {
    return run();
  }
  getStore(): undefined {
    return undefined;
  }
} as unknown as Host["AsyncLocalStorage"];

const silent = { hasSubscribers: false, publish() {}, subscribe() {}, unsubscribe() {} };

export const channel = (() => silent) as unknown as Host["channel"];
export const subscribe = missing("diagnostics channels") as unknown as Host["subscribe"];
export const unsubscribe = missing("diagnostics channels") as unknown as Host["unsubscribe"];
export const tracingChannel = (() => ({
  tracePromise: (run: () => unknown) => run(),
  subscribe() {},
  unsubscribe() {},
  hasSubscribers: false,
  start: silent,
  end: silent,
  asyncStart: silent,
  asyncEnd: silent,
  error: silent,
})) as unknown as Host["tracingChannel"];

export const spawnSync = missing("starting a program") as unknown as Host["spawnSync"];
export const readdirSync = missing("reading a directory") as unknown as Host["readdirSync"];
export const createRequire = (() => missing("an optional package")) as unknown as Host["createRequire"];
export const readFileNow = missing("reading a file") as unknown as Host["readFileNow"];
export const dataFilesOf = missing("reading a file") as unknown as Host["dataFilesOf"];
export const createHash = missing("the response cache") as unknown as Host["createHash"];

export const join = ((...parts: string[]) => parts.join("/")) as Host["join"];
export const fileURLToPath = ((url: URL) => String(url)) as Host["fileURLToPath"];
export const pathToFileURL = ((path: string) => new URL(`file://${path}`)) as Host["pathToFileURL"];

/** Processors of the device, as far as the host tells. */
const processors =
  (globalThis as { navigator?: { hardwareConcurrency?: number } }).navigator?.hardwareConcurrency ?? 1;

export const availableParallelism = (() => processors) as Host["availableParallelism"];

/** Most bytes of one call of `getRandomValues`. */
const RANDOM_BYTES = 65_536;

export const randomFillSync = ((bytes: Uint8Array) => {
  for (let at = 0; at < bytes.length; at += RANDOM_BYTES)
    web.crypto.getRandomValues(bytes.subarray(at, at + RANDOM_BYTES));
  return bytes;
}) as Host["randomFillSync"];

/** Pages of 64 bits may use about as much for one heap. */
const HEAP_BYTES = 2 * 1024 ** 3;

export const getHeapStatistics = (() => ({ heap_size_limit: HEAP_BYTES })) as Host["getHeapStatistics"];

export const process = {
  env: {},
  platform: "web",
  versions: {},
  emitWarning: (warning: unknown) => web.console.warn(warning),
  nextTick: (run: () => void) => queueMicrotask(run),
} as unknown as Host["process"];

export const performance = web.performance as Host["performance"];

/** A handle as Node's, of which the web platform has only the number. */
function handle(number: number) {
  return { number, ref() {}, unref() {} };
}

export const setTimeout = ((run: () => void, delayMs: number) =>
  handle(web.setTimeout(run, delayMs))) as unknown as Host["setTimeout"];
export const clearTimeout = ((timer: { number: number } | undefined) => {
  if (timer !== undefined) web.clearTimeout(timer.number);
}) as unknown as Host["clearTimeout"];
export const setQuietTimeout = setTimeout as unknown as Host["setQuietTimeout"];

/** The core uses intervals only to keep a process alive. A page lives without. */
export const setInterval = (() => handle(0)) as unknown as Host["setInterval"];

/** Runs after the microtasks that are queued by now: components of a page that call in one event share a batch. */
export const setImmediate = ((run: () => void) => {
  void Promise.resolve()
    .then(() => {})
    .then(() => {})
    .then(run);
}) as unknown as Host["setImmediate"];

/** Gives the events of the page a turn. */
export const untilNextTurn = (() =>
  new Promise<void>((resolve) => void web.setTimeout(resolve, 0))) as Host["untilNextTurn"];

export const compareBytes: Host["compareBytes"] = (a, b) => {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) if (a[i] !== b[i]) return a[i]! < b[i]! ? -1 : 1;
  return Math.sign(a.length - b.length);
};

export const hexOf: Host["hexOf"] = (bytes) =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
