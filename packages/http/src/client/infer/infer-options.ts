import type { ModelCallOptions } from "../client-options.js";
import type {
  TensorInput as CoreTensorInput,
  DataType,
  Parameters,
  Shape,
  Tensor,
  TensorValue,
} from "../core.js";
import type { Compression } from "../transport/compression.js";

/** A range of a registered region of shared memory. */
export interface SharedMemoryRange {
  /** The name under which the region is registered. */
  readonly region: string;
  readonly byteSize: number;
  /** Where in the region the tensor begins. @default 0 */
  readonly offset?: number;
}

/** An input with what is to be known of it. */
export interface TensorInput extends CoreTensorInput {
  /** `false` sends this input as JSON. @default that of the call */
  readonly binary?: boolean;
}

/** An input that lies in shared memory. */
export interface SharedMemoryInput {
  readonly datatype: DataType;
  readonly shape: Shape;
  readonly sharedMemory: SharedMemoryRange;
}

/** True for an input that lies in shared memory. */
export function isSharedMemoryInput(input: InferInput): input is SharedMemoryInput {
  return typeof input === "object" && "sharedMemory" in input && input.sharedMemory !== undefined;
}

/** An input in any form: described, or just an ndarray, a typed array or nested arrays. */
export type InferInput = TensorInput | SharedMemoryInput | Tensor | TensorValue<DataType>;

/** An output that is asked for. */
export interface OutputRequest {
  readonly name: string;
  /** `false` asks for JSON. @default that of the call */
  readonly binary?: boolean;
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

/** What can be said about one request, apart from its tensors. */
export interface InferRequestOptions extends ModelCallOptions {
  /** Shown in the server's errors, and returned with the answer. */
  readonly requestId?: string;
  /** Passed to the model. Names that the protocol gives a meaning are refused. */
  readonly parameters?: Parameters;
  /** 1 for the highest level; 0 for the model's default. */
  readonly priority?: number;
  /** How long the server may let the request wait. */
  readonly timeoutMicroseconds?: number;
  readonly sequence?: SequenceOptions;
  /** Tensors travel as bytes; `false` for JSON, which FP16 and BF16 have no form in. @default that of the client */
  readonly binary?: boolean;
  /** @default that of the client */
  readonly requestCompression?: Compression;
  /** @default that of the client */
  readonly responseCompression?: Compression;
}

/** An inference: its inputs by name, the outputs it asks for, and options. */
export interface InferCall extends InferRequestOptions {
  readonly inputs: Readonly<Record<string, InferInput>>;
  /** @default all outputs */
  readonly outputs?: readonly (string | OutputRequest)[];
}
