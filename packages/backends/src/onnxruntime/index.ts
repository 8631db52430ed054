import type { Backend, BackendFactory } from "@tritonjs/core/backend";
import { OnnxBackend } from "./onnx-backend.js";
import type { OnnxRuntimeOptions } from "./onnx-options.js";
import { onnxRuntimeBackend, openvinoBackend } from "./repository-backends.js";

export type { ExecutionProvider, OnnxEngine, OnnxRuntimeOptions } from "./onnx-options.js";
export { OnnxSession, type OnnxSessionOptions, openSession } from "./open-session.js";

/**
 * A backend that runs an ONNX model with ONNX Runtime. By default each instance is a worker thread with a session of
 * its own; `engine` has the alternative.
 * Inputs, outputs and whether the model can batch (all first dimensions variable) come from the file when `bind` does
 * not get them. Where the file leaves out the shape of an output, `bind` waits for a worker in which ONNX Runtime
 * infers it.
 *
 * @throws TritonError at `bind` for a missing file (NOT_FOUND), a file that is not an ONNX model (INVALID_ARG), types
 * that cannot pass through Node (UNSUPPORTED), and shapes that cannot be inferred because the model does not load
 * (INVALID_ARG).
 * @example
 * ```ts
 * triton.bind({ modelName: "iris", inferFunc: onnxruntime({ model: "iris.onnx" }) });
 * ```
 */
export function onnxruntime(options: OnnxRuntimeOptions): Backend {
  return new OnnxBackend(options);
}

/** Backends for models of a repository, by the name in `config.pbtxt`. */
export const repositoryBackends: Readonly<Record<string, BackendFactory>> = {
  onnxruntime: onnxRuntimeBackend,
  openvino: openvinoBackend,
};
