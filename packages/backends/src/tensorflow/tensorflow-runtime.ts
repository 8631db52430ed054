import { dirname, sep } from "node:path";
import { isMainThread } from "node:worker_threads";
import { unbundledRequire } from "@tritonjs/core/internal/worker";
import { errorFor, optionTypes, TritonError } from "@tritonjs/protocol";

/** Runtimes of TensorFlow.js models: a package, or a backend of the package `tfjs`. */
export type TensorflowRuntime = "tfjs-node-gpu" | "tfjs-node" | "wasm" | "cpu";

/** Options of {@link tensorflow}. */
export interface TensorflowOptions {
  /**
   * Path of a `model.json` of TensorFlow.js (GraphModel or LayersModel) with its weights beside it, of the directory of a
   * SavedModel, or of a frozen graph (`.pb`, `.graphdef`). tfjs-node runs a SavedModel with TensorFlow itself. Elsewhere
   * its graph and variables are read here, and TensorFlow.js runs them.
   */
  readonly model: string | URL;
  /**
   * The runtime of the model.
   * @default the first that is installed: `@tensorflow/tfjs-node` (on a GPU instance `@tensorflow/tfjs-node-gpu`),
   * `@tensorflow/tfjs` with `@tensorflow/tfjs-backend-wasm`, `@tensorflow/tfjs` with its backend `cpu`
   */
  readonly runtime?: TensorflowRuntime;
  /** Signature of a SavedModel. @default "serving_default" */
  readonly signature?: string;
  /** Nodes of a frozen graph that are its outputs. @default those that no other node takes */
  readonly outputs?: readonly string[];
}

export const TENSORFLOW_OPTION_TYPES = optionTypes<TensorflowOptions>({
  model: ["object", "string"],
  runtime: "string",
  signature: "string",
  outputs: "array",
});

const PACKAGES: Readonly<Record<TensorflowRuntime, readonly string[]>> = {
  "tfjs-node-gpu": ["@tensorflow/tfjs-node-gpu"],
  "tfjs-node": ["@tensorflow/tfjs-node"],
  wasm: ["@tensorflow/tfjs", "@tensorflow/tfjs-backend-wasm"],
  cpu: ["@tensorflow/tfjs"],
};

export const TENSORFLOW_RUNTIMES = Object.keys(PACKAGES) as readonly TensorflowRuntime[];

interface RuntimeNeeds {
  readonly runtime: TensorflowRuntime | undefined;
  readonly onGpu: boolean;
}

/**
 * Chooses the runtime of a model from the packages that are installed next to this package.
 *
 * @param isInstalled whether a package is installed
 * @throws TritonError UNAVAILABLE that says what to install
 */
export function findRuntime(
  { runtime, onGpu }: RuntimeNeeds,
  isInstalled: (name: string) => boolean = isInstalledHere,
): TensorflowRuntime {
  const native: readonly TensorflowRuntime[] = onGpu ? ["tfjs-node-gpu"] : ["tfjs-node", "tfjs-node-gpu"];
  const any: readonly TensorflowRuntime[] = onGpu ? native : [...native, "wasm", "cpu"];
  const possible = runtime === undefined ? any : any.filter((one) => one === runtime);
  const found = possible.find((one) => PACKAGES[one].every(isInstalled));
  if (found !== undefined) return found;
  if (runtime !== undefined && possible.length === 0) {
    const text = `TensorFlow's runtime for an instance on a GPU: expected ${any.join(" or ")}, got '${runtime}'`;
    throw errorFor("INVALID_OPTION", text);
  }
  const names = possible.map((one) => PACKAGES[one].join(" with "));
  throw errorFor(
    "PACKAGE_NOT_INSTALLED",
    `TensorFlow.js is not installed: install ${names.join(", or ")} next to @tritonjs/backends`,
  );
}

/** Whether a runtime has native code, which cannot be interrupted in a thread. */
export function isNative(runtime: TensorflowRuntime): boolean {
  return runtime === "tfjs-node" || runtime === "tfjs-node-gpu";
}

const require = unbundledRequire(import.meta.url);

function isInstalledHere(name: string): boolean {
  try {
    require.resolve(name);
    return true;
  } catch {
    return false;
  }
}

/** TensorFlow.js from any of its packages. */
export type Tf = typeof import("@tensorflow/tfjs");

/**
 * Loads a runtime in this worker.
 *
 * @param gpu number of the GPU, for an instance on a GPU
 * @throws TritonError UNAVAILABLE with the message of the package
 */
export async function openRuntime(runtime: TensorflowRuntime, gpu: number | undefined): Promise<Tf> {
  try {
    const tf = await load(runtime, gpu);
    // Without this call, TensorFlow.js writes greetings to the terminal.
    tf.enableProdMode();
    await tf.ready();
    return tf;
  } catch (error) {
    const { message } = TritonError.from(error);
    const text = `cannot load TensorFlow's runtime '${runtime}': ${message.split("\n")[0]}`;
    if (TritonError.is(error))
      throw new TritonError(error.code, text, { reason: error.reason, cause: error });
    throw errorFor("PACKAGE_NOT_INSTALLED", text, { cause: error });
  }
}

async function load(runtime: TensorflowRuntime, gpu: number | undefined): Promise<Tf> {
  if (runtime === "tfjs-node" || runtime === "tfjs-node-gpu") {
    if (gpu !== undefined) chooseGpu(gpu);
    restoreOldUtilities(require("node:util"));
    return require(`@tensorflow/${runtime}`) as Tf;
  }
  const tf = require("@tensorflow/tfjs") as Tf;
  tf.enableProdMode();
  if (runtime === "wasm") {
    const path = require.resolve("@tensorflow/tfjs-backend-wasm");
    const wasm = require(path) as { setWasmPaths(folder: string): void };
    wasm.setWasmPaths(dirname(path) + sep);
  }
  if (!(await tf.setBackend(runtime))) throw new Error(`its backend '${runtime}' did not start`);
  return tf;
}

/** The GPU that this process uses; undefined before the first instance on a GPU. */
let chosen: number | undefined;

/** Makes the GPU the only visible one, because TensorFlow uses the first visible GPU. */
function chooseGpu(gpu: number): void {
  if (gpu === chosen) return;
  if (chosen !== undefined) {
    const text = `TensorFlow already uses GPU ${chosen} in this process: set isolation 'process' for an instance on GPU ${gpu}`;
    throw errorFor("INVALID_CONFIG", text);
  }
  if (gpu === 0) {
    chosen = gpu;
    return;
  }
  if (!isMainThread) {
    const text = `TensorFlow uses the first GPU of its process: set isolation 'process' for an instance on GPU ${gpu}`;
    throw errorFor("INVALID_CONFIG", text);
  }
  chosen = gpu;
  // The number is an index into the visible GPUs.
  const visible = process.env.CUDA_VISIBLE_DEVICES?.split(",");
  process.env.CUDA_VISIBLE_DEVICES = visible?.[gpu]?.trim() ?? String(gpu);
}

/** Restores functions that Node 23 removed. tfjs-node 4.22, the last version, calls them. */
export function restoreOldUtilities(util: Record<string, unknown>): void {
  util.isNullOrUndefined ??= (value: unknown) => value === null || value === undefined;
  util.isArray ??= Array.isArray;
}
