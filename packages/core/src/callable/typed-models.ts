import type { InputValuesOf, ResultOf, TensorSpec } from "@tritonjs/protocol";
import type { TritonModels } from "./triton-models.js";

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
