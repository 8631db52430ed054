import type { ModelConfig, TensorSpec } from "@tritonjs/protocol";
import type { ModelOptions } from "../../src/config/model-options.js";
import { resolveConfig } from "../../src/config/resolve-config.js";

/** Changes to a model `m` that takes `x` FP32 [2] and returns `y` FP32 [3], with batches of up to 4. */
export interface ModelSketch {
  readonly inputs?: readonly TensorSpec[];
  readonly outputs?: readonly TensorSpec[];
  readonly options?: ModelOptions;
  /** Whether the model has a batch axis by itself. @default true */
  readonly batching?: boolean;
  readonly overrides?: Partial<ModelConfig>;
  readonly instances?: number;
  /** GPUs of the machine; undefined for a machine without a driver. */
  readonly gpus?: readonly number[];
}

/** A resolved configuration. */
export function modelConfig(sketch: ModelSketch = {}): ModelConfig {
  return resolveConfig({
    modelName: "m",
    inputs: sketch.inputs ?? [{ name: "x", dtype: "FP32", shape: [2] }],
    outputs: sketch.outputs ?? [{ name: "y", dtype: "FP32", shape: [3] }],
    options: sketch.options ?? {},
    backend: "javascript",
    platform: "",
    batchingByDefault: sketch.batching ?? true,
    decoupledByDefault: false,
    defaultInstanceCount: sketch.instances ?? 1,
    gpus: { numbers: sketch.gpus },
    overrides: sketch.overrides,
  });
}
