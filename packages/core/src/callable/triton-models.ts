import type { InputValuesOf, ResultOf, TensorSpec } from "@tritonjs/protocol";

/**
 * Models whose tensors the compiler knows. `triton.infer("resnet", ...)` is typed for a model that is listed here. A
 * call with any other name takes and returns tensors of any kind. The file that `tritonjs types` writes adds the models
 * of a repository:
 *
 * ```ts
 * declare module "@tritonjs/core" {
 *   interface TritonModels {
 *     resnet: {
 *       inputs: [{ name: "image"; dtype: "FP32"; shape: [3, 224, 224] }];
 *       outputs: [{ name: "label"; dtype: "FP32"; shape: [1000] }];
 *     };
 *   }
 * }
 * ```
 */
// biome-ignore lint/suspicious/noEmptyInterface: module augmentation fills it
export interface TritonModels {}

/** Entry of a model in `TritonModels`. */
interface TypedModel {
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
}

/** Inputs of a model by its name. `Untyped` for a model that `TritonModels` does not list. */
export type InputsOfModel<M extends string, Untyped> = M extends keyof TritonModels
  ? TritonModels[M] extends TypedModel
    ? InputValuesOf<TritonModels[M]["inputs"]>
    : Untyped
  : Untyped;

/** Outputs of a model by its name. `Untyped` for a model that `TritonModels` does not list. */
export type OutputsOfModel<M extends string, Untyped> = M extends keyof TritonModels
  ? TritonModels[M] extends TypedModel
    ? ResultOf<TritonModels[M]["outputs"]>
    : Untyped
  : Untyped;
