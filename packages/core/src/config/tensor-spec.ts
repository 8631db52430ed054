import type { DataType } from "../tensor/data-type.js";
import type { Shape } from "../tensor/shape.js";
import type { BatchInputSpec, BatchOutputSpec } from "./batch-tensors.js";

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
  /**
   * Requests of one batch may have this input in different shapes; who takes the batch as a whole (`batch`, a model
   * file) gets the elements of all requests in one dimension. Inputs only.
   */
  readonly allowRaggedBatch?: boolean;
  /** A tensor without a batch axis, which all requests of a batch have alike, to the last element. */
  readonly isShapeTensor?: boolean;
  /** An input that clients do not send: it is made when the batch is, for who takes the batch as a whole. */
  readonly batchInput?: BatchInputSpec;
  /** How the output of a whole batch is handed out, where that is not by rows. Outputs only. */
  readonly batchOutput?: BatchOutputSpec;
}

/** One tensor of a model, as its file describes it. */
export interface DescribedTensor extends TensorSpec {
  /** True when the file leaves even the number of dimensions open; `shape` is empty then. */
  readonly rankUnknown?: boolean;
}
