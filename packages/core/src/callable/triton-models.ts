import type { InputValuesOf, ResultOf, TensorSpec } from "@tritonjs/protocol";

/**
 * Models whose tensors the compiler knows: `triton.infer("resnet", ...)` of one that stands here is typed, any other
 * name takes and gives tensors of any kind. The file that `tritonjs types` writes adds the models of a repository:
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
// biome-ignore lint/suspicious/noEmptyInterface: it is there to be filled from outside
export interface TritonModels {}

/** What stands in `TritonModels` for a model. */
interface TypedModel {
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
}

/** What a model is given by name: `Untyped` for one that `TritonModels` does not have. */
export type InputsOfModel<M extends string, Untyped> = M extends keyof TritonModels
  ? TritonModels[M] extends TypedModel
    ? InputValuesOf<TritonModels[M]["inputs"]>
    : Untyped
  : Untyped;

/** What a model gives by name: `Untyped` for one that `TritonModels` does not have. */
export type OutputsOfModel<M extends string, Untyped> = M extends keyof TritonModels
  ? TritonModels[M] extends TypedModel
    ? ResultOf<TritonModels[M]["outputs"]>
    : Untyped
  : Untyped;
