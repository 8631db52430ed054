import type { ModelConfig, TensorSpec } from "@tritonjs/protocol";
import type { EnsembleOptions, EnsembleStep } from "../config/options/ensemble-options.js";

/**
 * Options of `bindEnsemble`.
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
  /** Name of the ensemble: letters, digits, `.`, `_` and `-`. */
  readonly modelName: string;
  /** Version of the ensemble. @default 1 */
  readonly modelVersion?: number;
  /** Inputs of the ensemble, without the batch axis. */
  readonly inputs?: I;
  /** Outputs of the ensemble, without the batch axis. */
  readonly outputs?: O;
  /**
   * The models that requests pass through. A step runs as soon as its inputs exist, whatever its position in this list.
   */
  readonly steps?: readonly EnsembleStep[];
  readonly config?: EnsembleOptions;
  /**
   * Fields of Triton's own model configuration, in camelCase. They override values that follow from the other options.
   */
  readonly modelConfig?: Partial<ModelConfig>;
}
