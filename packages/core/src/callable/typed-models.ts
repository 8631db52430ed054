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

/** Inputs of a bound model: those that were given, otherwise those that `TritonModels` lists for its name. */
export type BoundInputs<M extends string, I extends readonly TensorSpec[]> = readonly TensorSpec[] extends I
  ? M extends keyof TritonModels
    ? TritonModels[M] extends TypedModel
      ? TritonModels[M]["inputs"]
      : I
    : I
  : I;

/** Outputs of a bound model: those that were given, otherwise those that `TritonModels` lists for its name. */
export type BoundOutputs<M extends string, O extends readonly TensorSpec[]> = readonly TensorSpec[] extends O
  ? M extends keyof TritonModels
    ? TritonModels[M] extends TypedModel
      ? TritonModels[M]["outputs"]
      : O
    : O
  : O;
