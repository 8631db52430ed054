import type { InstanceInfo } from "../callable/infer-context.js";
import type { Clock } from "../clock/clock.js";
import type { InstancePlacement } from "../config/instances.js";
import type { TensorSpec } from "../config/tensor-spec.js";
import type { OutputChecker } from "../response/check-outputs.js";
import type { Executor } from "./executor.js";

/** What a backend found out about a model by reading its file. */
export interface ModelDescription {
  /** Tensors with all their dimensions, the batch axis included, as the file declares them. */
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
}

/** What an executor is made with. */
export interface ExecutorContext {
  readonly placement: InstancePlacement;
  readonly info: InstanceInfo;
  readonly checker: OutputChecker;
  readonly clock: Clock;
  /** Instances of the model altogether. */
  readonly instanceCount: number;
}

/** A way to run model files. `onnxruntime({ model })` makes one. */
export interface Backend {
  /** Triton's name of the backend: `onnxruntime`. */
  readonly backendName: string;
  /** Triton's platform string: `onnxruntime_onnx`. */
  readonly platform: string;
  /** Reads the model's own description. Throws `TritonError` for a missing or broken file. */
  describe(): ModelDescription;
  /** Makes the executor of one instance. */
  createExecutor(context: ExecutorContext): Executor;
}

/** True for a backend, as opposed to a function or a URL. */
export function isBackend(value: unknown): value is Backend {
  return (
    typeof value === "object" &&
    value !== null &&
    typeof (value as Partial<Backend>).createExecutor === "function"
  );
}
