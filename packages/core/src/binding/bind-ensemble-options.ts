import type { ModelConfig, TensorSpec } from "@tritonjs/protocol";
import type { EnsembleOptions, EnsembleStep } from "../config/options/ensemble-options.js";

/**
 * What `bindEnsemble` takes.
 *
 * @example
 * ```ts
 * const options = {
 *   modelName: "classify",
 *   inputs: [{ name: "image", dtype: "BYTES", shape: [1] }],
 *   outputs: [{ name: "classes", dtype: "FP32", shape: [1000] }],
 *   steps: [
 *     { modelName: "decode", inputMap: { jpeg: "image" }, outputMap: { pixels: "pixels" } },
 *     { modelName: "resnet", inputMap: { data: "pixels" }, outputMap: { prob: "classes" } },
 *   ],
 * } as const;
 * ```
 */
export interface BindEnsembleOptions<I extends readonly TensorSpec[], O extends readonly TensorSpec[]> {
  /** Letters, digits, `.`, `_` and `-`. */
  readonly modelName: string;
  /** @default 1 */
  readonly modelVersion?: number;
  /** Inputs without the batch axis. */
  readonly inputs?: I;
  /** Outputs without the batch axis. */
  readonly outputs?: O;
  /** The models that requests go through. A step runs when all that it reads exists, whatever its place here. */
  readonly steps?: readonly EnsembleStep[];
  readonly config?: EnsembleOptions;
  /** Fields of Triton's own model configuration, in camelCase. They win over what follows from the other options. */
  readonly modelConfig?: Partial<ModelConfig>;
}
