import type { Parameters } from "../request/parameters.js";
import type { DataType } from "../tensor/data-type.js";
import type { TensorValue } from "../tensor/from-value.js";
import type { TensorInput } from "../tensor/input-tensor.js";
import type { Shape } from "../tensor/shape.js";
import type { Tensor } from "../tensor/tensor.js";

/** A range of a registered region of shared memory. */
export interface SharedMemoryRange {
  /** The name under which the region is registered. */
  readonly region: string;
  readonly byteSize: number;
  /** Where in the region the tensor begins. @default 0 */
  readonly offset?: number;
}

/** An input that lies in shared memory. */
export interface SharedMemoryInput {
  readonly datatype: DataType;
  readonly shape: Shape;
  readonly sharedMemory: SharedMemoryRange;
}

/** An input in any form: described, or just an ndarray, a typed array or nested arrays. */
export type InferInput<Described extends TensorInput = TensorInput> =
  | Described
  | SharedMemoryInput
  | Tensor
  | TensorValue<DataType>;

/** True for an input that lies in shared memory. */
export function isSharedMemoryInput(input: InferInput): input is SharedMemoryInput {
  return typeof input === "object" && "sharedMemory" in input && input.sharedMemory !== undefined;
}

/** An output that is asked for, whatever carries it. */
export interface CommonOutputRequest {
  readonly name: string;
  /** Asks for this many of the best classes instead of the tensor: `BYTES` elements `value:index:label`. */
  readonly classes?: number;
  /** Where the server is to put the output. */
  readonly sharedMemory?: SharedMemoryRange;
}

/** The sequence that a request belongs to. */
export interface SequenceOptions {
  readonly id: number | bigint | string;
  /** True for the first request of the sequence. */
  readonly start?: boolean;
  /** True for the last request of the sequence. */
  readonly end?: boolean;
}

/** What a request says to the server and to the model beside its tensors. */
export interface RequestOptions {
  /** Shown in the server's errors, and returned with the answer. */
  readonly requestId?: string;
  /** Passed to the model. Names that the protocol gives a meaning are refused. */
  readonly parameters?: Parameters;
  /** 1 for the highest level; 0 for the model's default. */
  readonly priority?: number;
  /** How long the server may let the request wait. */
  readonly timeoutMicroseconds?: number;
  readonly sequence?: SequenceOptions;
}
