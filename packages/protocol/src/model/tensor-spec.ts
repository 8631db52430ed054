import type { DataType } from "../tensor/data-type.js";
import type { Shape } from "../tensor/shape.js";

/** Triton's kinds of inputs that are computed from the shapes of another input, over all requests of a batch. */
export const BATCH_INPUT_KINDS = [
  "BATCH_ELEMENT_COUNT",
  "BATCH_ACCUMULATED_ELEMENT_COUNT",
  "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO",
  "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE",
  "BATCH_ITEM_SHAPE",
  "BATCH_ITEM_SHAPE_FLATTEN",
] as const;

/** Triton's kinds of outputs that are split among the requests by the shapes of an input. */
export const BATCH_OUTPUT_KINDS = ["BATCH_SCATTER_WITH_INPUT_SHAPE"] as const;

/**
 * How an input is computed that clients do not send:
 *
 * | kind | shape in the batch | values |
 * |---|---|---|
 * | `BATCH_ELEMENT_COUNT` | [requests] | number of elements of the source in each request |
 * | `BATCH_ACCUMULATED_ELEMENT_COUNT` | [requests] | running total of these numbers |
 * | `BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO` | [requests + 1] | 0, then the running total |
 * | `BATCH_MAX_ELEMENT_COUNT_AS_SHAPE` | [largest number of elements of a request] | 0 |
 * | `BATCH_ITEM_SHAPE` | [rows, rank] | shape of the source in each row, before padding |
 * | `BATCH_ITEM_SHAPE_FLATTEN` | [rows * rank] | the same |
 * | `PADDING_MASK` | as the padded source | 1 for an element of the request, 0 for padding |
 *
 * All kinds but the last are Triton's, and have data type INT32 or FP32.
 */
export interface BatchInputSpec {
  readonly kind: (typeof BATCH_INPUT_KINDS)[number] | "PADDING_MASK";
  readonly sourceInput: string;
}

/**
 * How an output is split among the requests of a batch. Its variable dimensions are those of an input of the request,
 * axis by axis.
 *
 * - `BATCH_SCATTER_WITH_INPUT_SHAPE` (Triton's): the model returns the elements of all requests one after another.
 * - `CUT_TO_INPUT_SHAPE`: the model returns rows of the length of the padded input. Each request gets back the length
 *   that it sent.
 */
export interface BatchOutputSpec {
  readonly kind: (typeof BATCH_OUTPUT_KINDS)[number] | "CUT_TO_INPUT_SHAPE";
  readonly sourceInput: string;
}

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
  /** Whether requests may leave this input out. Inputs only. */
  readonly optional?: boolean;
  /** Names of the classes that an output scores, for requests that ask for a classification. Outputs only. */
  readonly labels?: readonly string[];
  /**
   * Whether requests of one batch may have different shapes of this input. Code that takes the batch as a whole
   * (`batch`, a model file) gets the elements of all requests in one dimension. Inputs only.
   */
  readonly allowRaggedBatch?: boolean;
  /** Whether the tensor has no batch axis and must be equal, to the last element, in all requests of a batch. */
  readonly isShapeTensor?: boolean;
  /**
   * Marks an input that clients do not send. It is computed together with the batch, for code that takes the batch as a
   * whole.
   */
  readonly batchInput?: BatchInputSpec;
  /** How the output of a whole batch is split, if not by rows. Outputs only. */
  readonly batchOutput?: BatchOutputSpec;
}

/** One tensor of a model, as its file describes it. */
export interface DescribedTensor extends TensorSpec {
  /** True if the file does not even fix the number of dimensions. `shape` is then empty. */
  readonly rankUnknown?: boolean;
}
