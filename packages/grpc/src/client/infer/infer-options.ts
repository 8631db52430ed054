import type { CallOptions, Compression, ModelCallOptions } from "../client-options.js";
import type { DataType, Parameters, Shape, Tensor, TensorInput, TensorValue } from "../core.js";

export type { TensorInput } from "../core.js";

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

/** True for an input that lies in shared memory. */
export function isSharedMemoryInput(input: InferInput): input is SharedMemoryInput {
  return typeof input === "object" && "sharedMemory" in input && input.sharedMemory !== undefined;
}

/** An input in any form: described, or just an ndarray, a typed array or nested arrays. */
export type InferInput = TensorInput | SharedMemoryInput | Tensor | TensorValue<DataType>;

/** An output that is asked for. */
export interface OutputRequest {
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
  /** @default that of the client */
  readonly requestCompression?: Compression;
}

/** An inference: its inputs by name, the outputs it asks for, and options. */
export interface InferCall extends InferRequestOptions {
  readonly inputs: Readonly<Record<string, InferInput>>;
  /** @default all outputs */
  readonly outputs?: readonly (string | OutputRequest)[];
}

/** An inference on a stream. */
export interface StreamInferRequest extends Omit<InferCall, keyof CallOptions | "requestCompression"> {
  readonly modelName: string;
  /** Asks to be told of the end of a request to a decoupled model also when no response carries it. */
  readonly enableEmptyFinalResponse?: boolean;
}
