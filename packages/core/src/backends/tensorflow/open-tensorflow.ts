import type { InstanceInfo } from "../../callable/infer-context.js";
import { findRuntime } from "./find-runtime.js";
import { openRuntime, type Tf } from "./open-runtime.js";
import type { TensorflowRuntime } from "./options.js";

/**
 * Loads TensorFlow.js on the device of an instance, for a callback that uses it: `@tensorflow/tfjs-node-gpu` on a GPU,
 * and the first that is installed of `@tensorflow/tfjs-node`, the backends `wasm` and `cpu` of `@tensorflow/tfjs` on the
 * CPU. It is loaded once in a thread.
 *
 * @param instance the context of a callback, or what `initialize` is given
 * @throws TritonError UNAVAILABLE when nothing that could run there is installed, or it does not load; INVALID_ARG for a
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
