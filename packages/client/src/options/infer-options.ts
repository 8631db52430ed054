import type { BareData, DataType, InferOptions, Shape, Tensor, TensorInput } from "@tritonjs/protocol";

/** A range of a registered region of shared memory. */
export interface SharedMemoryRange {
  /** Name of the registered region. */
  readonly region: string;
  readonly byteSize: number;
  /** Offset of the tensor in the region, in bytes. @default 0 */
  readonly offset?: number;
}

/** An input in shared memory. */
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
  | BareData;

/** True for an input in shared memory. */
export function isSharedMemoryInput(input: InferInput): input is SharedMemoryInput {
  return typeof input === "object" && "sharedMemory" in input && input.sharedMemory !== undefined;
}

/** A requested output, in both protocols. */
export interface CommonOutputRequest {
  readonly name: string;
  /** Requests this number of best classes instead of the tensor: `BYTES` elements `value:index:label`. */
  readonly classes?: number;
  /** Range of shared memory for the output. */
  readonly sharedMemory?: SharedMemoryRange;
}

/** Options of a request that go to the server and the model, besides the tensors. */
export type RequestOptions = Omit<InferOptions, "signal" | "timeoutMs">;
