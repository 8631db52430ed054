import {
  type BareData,
  type DataType,
  type InferOptions,
  isReservedParameter,
  type ParameterValue,
  type Shape,
  type Tensor,
  type TensorInput,
  TritonError,
} from "@tritonjs/protocol";
import type { CommonCallOptions, CommonClientOptions } from "./options.js";

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

/**
 * The inputs that are not undefined, with their names.
 *
 * @throws TritonError INVALID_ARG for a list, such as that of a model's metadata, and anything else without names.
 */
export function namedInputs<Input>(inputs: Readonly<Record<string, Input | undefined>>): [string, Input][] {
  if (typeof inputs !== "object" || inputs === null || Array.isArray(inputs)) {
    const got = Array.isArray(inputs) ? "an array" : String(inputs);
    throw new TritonError(
      "INVALID_ARG",
      `inputs: expected an object with a value for each input, got ${got}`,
      {
        reason: "INVALID_INPUT",
      },
    );
  }
  return Object.entries(inputs).filter((one): one is [string, Input] => one[1] !== undefined);
}

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

/** The `parameters` of an infer request. A custom one must not have a name that the protocol reserves. */
export function requestParameters({
  parameters = {},
  sequence,
  priority,
  queueTimeoutMicroseconds,
}: RequestOptions): Record<string, ParameterValue> {
  const all: Record<string, ParameterValue> = Object.create(null);
  for (const [name, value] of Object.entries(parameters)) {
    if (isReservedParameter(name)) {
      const message = `Parameter "${name}" is a reserved parameter and cannot be specified.`;
      throw new TritonError("INVALID_ARG", message, { reason: "INVALID_PARAMETER" });
    }
    all[name] = value;
  }
  if (sequence !== undefined) {
    all.sequence_id = sequence.id;
    all.sequence_start = sequence.start ?? false;
    all.sequence_end = sequence.end ?? false;
  }
  if (priority !== undefined && priority !== 0) all.priority = priority;
  if (queueTimeoutMicroseconds !== undefined) all.timeout = queueTimeoutMicroseconds;
  return all;
}

/** The headers of a call with the id of its sequence, if the client has a header for that. The call's own come last. */
export function withSequenceHeader(
  { sequenceHeader }: Pick<CommonClientOptions, "sequenceHeader">,
  { headers, sequence }: Pick<CommonCallOptions, "headers"> & Pick<RequestOptions, "sequence">,
): CommonCallOptions["headers"] {
  if (sequenceHeader === undefined || sequence === undefined) return headers;
  return { [sequenceHeader]: encodeURIComponent(String(sequence.id)), ...headers };
}

/** Whether a lost inference may be sent again. A second run of a sequence's step would change its state twice. */
export function isRepeatable(
  { retryLostInferences }: Pick<CommonClientOptions, "retryLostInferences">,
  { sequence }: Pick<RequestOptions, "sequence">,
): boolean {
  return retryLostInferences === true && sequence === undefined;
}
