import type { DataType, InferOptions, Shape, Tensor, TensorInput, TensorValue } from "@tritonjs/protocol";

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

/** What a request says to the server and to the model besides its tensors. */
export type RequestOptions = Omit<InferOptions, "signal" | "timeoutMs">;
