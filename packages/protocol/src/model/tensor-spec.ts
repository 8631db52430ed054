import type { DataType } from "../tensor/data-type.js";
import type { Shape } from "../tensor/shape.js";

/** Triton's kinds of inputs that are made of the shapes of another one, over all requests of a batch. */
export const BATCH_INPUT_KINDS = [
  "BATCH_ELEMENT_COUNT",
  "BATCH_ACCUMULATED_ELEMENT_COUNT",
  "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO",
  "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE",
  "BATCH_ITEM_SHAPE",
  "BATCH_ITEM_SHAPE_FLATTEN",
] as const;

/** Triton's kinds of outputs that are handed out to requests by the shapes of an input. */
export const BATCH_OUTPUT_KINDS = ["BATCH_SCATTER_WITH_INPUT_SHAPE"] as const;

/**
 * What an input is made of that clients do not send:
 *
 * | kind | shape in the batch | values |
 * |---|---|---|
 * | `BATCH_ELEMENT_COUNT` | [requests] | elements of the source in each request |
 * | `BATCH_ACCUMULATED_ELEMENT_COUNT` | [requests] | the same, each with all before it |
 * | `BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO` | [requests + 1] | the same after a 0 |
 * | `BATCH_MAX_ELEMENT_COUNT_AS_SHAPE` | [most elements of a request] | 0 |
 * | `BATCH_ITEM_SHAPE` | [rows, rank] | shape of the source in each row, before padding |
 * | `BATCH_ITEM_SHAPE_FLATTEN` | [rows * rank] | the same |
 * | `PADDING_MASK` | as the padded source | 1 for an element of the request, 0 where it was filled up |
 *
 * All but the last are Triton's, and INT32 or FP32.
 */
export interface BatchInputSpec {
  readonly kind: (typeof BATCH_INPUT_KINDS)[number] | "PADDING_MASK";
  readonly sourceInput: string;
}

/**
 * How an output is handed out to the requests of a batch. Its variable dimensions are those of an input of the request,
 * axis by axis.
 *
 * - `BATCH_SCATTER_WITH_INPUT_SHAPE` (Triton's): the model returns the elements of all requests one after another.
 * - `CUT_TO_INPUT_SHAPE`: the model returns rows that are as long as the padded input, and each request gets back as much
 *   as it sent.
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
