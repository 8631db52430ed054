import { dirname, sep } from "node:path";
import { isMainThread } from "node:worker_threads";
import { TritonError } from "@tritonjs/protocol";
import { unbundledRequire } from "../../unbundled.js";
import type { TensorflowRuntime } from "./options.js";

/** TensorFlow.js from any of its packages. */
export type Tf = typeof import("@tensorflow/tfjs");

const require = unbundledRequire(import.meta.url);

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
    throw new TritonError("UNAVAILABLE", text, { reason: "PACKAGE_NOT_INSTALLED", cause: error });
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
    throw new TritonError(
      "INVALID_ARG",
      `TensorFlow already uses GPU ${chosen} in this process: set isolation 'process' for an instance on GPU ${gpu}`,
      { reason: "INVALID_CONFIG" },
    );
  }
  if (gpu === 0) {
    chosen = gpu;
    return;
  }
  if (!isMainThread) {
    throw new TritonError(
      "INVALID_ARG",
      `TensorFlow uses the first GPU of its process: set isolation 'process' for an instance on GPU ${gpu}`,
      { reason: "INVALID_CONFIG" },
    );
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
