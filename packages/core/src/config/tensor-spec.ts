import type { DataType } from "../tensor/data-type.js";
import type { Shape } from "../tensor/shape.js";

/**
 * One tensor of a model, as `bind` takes it.
 *
 * @example
 * ```ts
 * const spec: TensorSpec = { name: "tokens", dtype: "INT64", shape: [-1] };
 * ```
 */
export interface TensorSpec {
  readonly name: string;
  readonly dtype: DataType;
  /** Dimensions without the batch axis; -1 for any size. */
  readonly shape: Shape;
  /** Requests may leave this input out. Inputs only. */
  readonly optional?: boolean;
  /** Names of the classes that an output scores, for requests that ask for a classification. Outputs only. */
  readonly labels?: readonly string[];
}
