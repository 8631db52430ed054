import { TritonError } from "@tritonjs/protocol";
import { unbundledRequire } from "../../unbundled.js";
import type { TensorflowRuntime } from "./options.js";

const PACKAGES: Readonly<Record<TensorflowRuntime, readonly string[]>> = {
  "tfjs-node-gpu": ["@tensorflow/tfjs-node-gpu"],
  "tfjs-node": ["@tensorflow/tfjs-node"],
  wasm: ["@tensorflow/tfjs", "@tensorflow/tfjs-backend-wasm"],
  cpu: ["@tensorflow/tfjs"],
};

/** All runtimes. */
export const TENSORFLOW_RUNTIMES = Object.keys(PACKAGES) as readonly TensorflowRuntime[];

/** The requirements of a model on its runtime. */
export interface RuntimeNeeds {
  readonly runtime: TensorflowRuntime | undefined;
  /** Whether the instance is on a GPU. */
  readonly onGpu: boolean;
  /** Whether the model is a SavedModel. */
  readonly savedModel: boolean;
}

/**
 * Chooses the runtime of a model from the packages that are installed next to this package.
 *
 * @param isInstalled whether a package is installed
 * @throws TritonError UNAVAILABLE that says what to install
 */
export function findRuntime(
  { runtime, onGpu, savedModel }: RuntimeNeeds,
  isInstalled: (name: string) => boolean = isInstalledHere,
): TensorflowRuntime {
  const native: readonly TensorflowRuntime[] = onGpu ? ["tfjs-node-gpu"] : ["tfjs-node", "tfjs-node-gpu"];
  const any: readonly TensorflowRuntime[] = onGpu || savedModel ? native : [...native, "wasm", "cpu"];
  const possible = runtime === undefined ? any : any.filter((one) => one === runtime);
  const found = possible.find((one) => PACKAGES[one].every(isInstalled));
  if (found !== undefined) return found;
  if (runtime !== undefined && possible.length === 0) {
    const what = savedModel ? "a SavedModel" : "an instance on a GPU";
    throw new TritonError(
      "INVALID_ARG",
      `TensorFlow's runtime for ${what}: expected ${any.join(" or ")}, got '${runtime}'`,
      { reason: "INVALID_OPTION" },
    );
  }
  const names = possible.map((one) => PACKAGES[one].join(" with "));
  const why = savedModel
    ? "a SavedModel needs TensorFlow's own library; or convert it with tensorflowjs_converter to model.json"
    : "TensorFlow.js is not installed";
  throw new TritonError("UNAVAILABLE", `${why}: install ${names.join(", or ")} next to @tritonjs/core`, {
    reason: "PACKAGE_NOT_INSTALLED",
  });
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
