import { existsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { TritonError } from "@tritonjs/protocol";
import type { InstanceInfo } from "../../callable/infer-context.js";
import type { Backend } from "../../instance/backend.js";
import { WorkerExecutor } from "../../instance/worker/worker-executor.js";
import { describeModelSync } from "./describe-model.js";
import { findRuntime, isNative } from "./find-runtime.js";
import { openRuntime, type Tf } from "./open-runtime.js";
import type { TensorflowOptions, TensorflowRuntime } from "./options.js";
import type { TensorflowData } from "./tensorflow-model.js";

export type { TensorflowOptions, TensorflowRuntime } from "./options.js";

/**
 * A backend that runs a TensorFlow.js model (GraphModel or LayersModel) or a SavedModel, each instance in a worker
 * thread of its own. Inputs, outputs and whether the model can batch (all first dimensions variable) come from its
 * signature or its layers when `bind` does not get them.
 *
 * @throws TritonError at `bind` for a missing file (NOT_FOUND), a file that is not a model (INVALID_ARG), and when no
 * runtime for it is installed (UNAVAILABLE).
 * @example
 * ```ts
 * triton.bind({ modelName: "digits", inferFunc: tensorflow({ model: "digits/model.json" }) });
 * ```
 */
export function tensorflow(options: TensorflowOptions): Backend {
  const path = options.model instanceof URL ? fileURLToPath(options.model) : options.model;
  return tensorflowIn(path, dirname(path), options);
}

/** The same backend for a model whose files must all be inside a directory. */
export function tensorflowIn(
  path: string,
  directory: string,
  options: Omit<TensorflowOptions, "model">,
): Backend {
  return {
    backendName: "tensorflow",
    platform: isSavedModel(path) ? "tensorflow_savedmodel" : "tensorflow_tfjs",
    isolations: ["worker", "process"],
    describe: () => describeModelSync(modelData(path, directory, options, false)),
    createExecutor: (context) => {
      const data = modelData(path, directory, options, context.placement.kind === "KIND_GPU");
      const program = {
        entry: new URL("./tensorflow-model.js", import.meta.url),
        data,
        interruptible: !isNative(data.runtime),
        tensorsOnly: true,
      };
      return new WorkerExecutor(program, { ...context, warn: (message) => context.log.warning(message) });
    },
  };
}

/**
 * The data that a worker opens.
 *
 * @throws TritonError NOT_FOUND for a missing file, UNAVAILABLE when no runtime for it is installed.
 */
export function modelData(
  path: string,
  directory: string,
  { runtime, signature = "serving_default" }: Omit<TensorflowOptions, "model">,
  onGpu: boolean,
): TensorflowData {
  if (!existsSync(path))
    throw new TritonError("NOT_FOUND", `cannot find the TensorFlow model '${path}'`, {
      reason: "MODEL_FILES_NOT_FOUND",
    });
  const savedModel = isSavedModel(path);
  return { path, directory, savedModel, signature, runtime: findRuntime({ runtime, onGpu, savedModel }) };
}

function isSavedModel(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/**
 * Loads TensorFlow.js on the device of an instance, for a callback that uses it: `@tensorflow/tfjs-node-gpu` on a GPU.
 * On the CPU it is the first that is installed of `@tensorflow/tfjs-node`, and the backends `wasm` and `cpu` of
 * `@tensorflow/tfjs`. A thread loads it once.
 *
 * @param instance the context of a callback, or the argument of `initialize`
 * @throws TritonError UNAVAILABLE when no runtime for the device is installed, or it does not load; INVALID_ARG for a
 * `runtime` that cannot run there, and for a second GPU in one process: such instances need isolation `process`.
 * @example
 * ```ts
 * export default batch(async ({ x }, context) => {
 *   const tf = await openTensorflow(context);
 *   return { y: await tf.tensor(x.data, x.shape).square().data() };
 * });
 * ```
 */
export async function openTensorflow(
  { device }: Pick<InstanceInfo, "device">,
  { runtime }: { readonly runtime?: TensorflowRuntime } = {},
): Promise<Tf> {
  const onGpu = device.kind === "KIND_GPU";
  return openRuntime(findRuntime({ runtime, onGpu, savedModel: false }), onGpu ? device.id : undefined);
}
