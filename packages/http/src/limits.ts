import { errorFor, TritonError } from "@tritonjs/protocol";

/** Default limit on a tensor of a JSON document or raw body in bytes, as Triton's `--http-max-input-size`. */
export const DEFAULT_MAX_INPUT_SIZE = 64 * 1024 * 1024;

/** Room for the JSON header of a request whose tensors take the whole of `maxInputSize`, in bytes. */
export const BODY_ALLOWANCE = 64 * 1024;

/** Numbers that a document may have beside its tensors: those of shapes. */
const FURTHER_NUMBERS = 2 ** 21;

/** Most numbers in a document with tensors: an element has at least one byte. */
export function maxNumbers(maxInputSize: number): number {
  return maxInputSize + FURTHER_NUMBERS;
}

/** Most non-empty chunks of a chunked request body. */
export const MAX_CHUNKS = 65_536;

/**
 * Most values in one JSON document, where an array of numbers, of booleans or of strings counts as one. A value takes
 * some hundred bytes of memory, and may cost the client only two bytes.
 */
export const MAX_JSON_VALUES = 2 ** 19;

/** Most objects in one JSON document: two for each of 4096 inputs and 4096 outputs take an eighth of them. */
export const MAX_JSON_OBJECTS = 2 ** 17;

/** Most members of one object. A load request has one for each file. */
export const MAX_JSON_MEMBERS = 2 ** 16;

/** Most strings in the arrays of strings of one JSON document. */
export const MAX_JSON_STRINGS = 2 ** 21;

/** Most dimensions in the shape of an input. Frameworks have at most 64. */
export const MAX_RANK = 1024;

/** Most parameters of a request, as over gRPC. Each becomes a property of one object, which takes microseconds. */
export const MAX_JSON_PARAMETERS = 4096;

/** Deepest nesting of a tensor's `data`. */
export const MAX_DATA_DEPTH = 100;

/** Most inputs, and most requested outputs, of a request, unless its model has more. */
export const MAX_TENSORS = 4096;

/** Error of a request with a body or a tensor above the limit on inputs. */
export class InputTooLarge extends TritonError<"INVALID_ARG"> {
  /** @param fault the text up to the advice how to raise the limit */
  constructor(
    private readonly fault: string,
    cause?: unknown,
  ) {
    super("INVALID_ARG", fault, { reason: "REQUEST_TOO_LARGE", cause });
  }

  /** The error with Triton's advice, which names the option of the server for the limit. */
  advising(option: string): TritonError {
    const text = `${this.fault}. Use ${option} to increase the limit.`;
    return errorFor("REQUEST_TOO_LARGE", text, { cause: this.cause });
  }
}

/** @throws TritonError INVALID_ARG when a request names more tensors than both the limit and the model allow. */
export function checkTensorCount(kind: "inputs" | "outputs", count: number, modelCount: number): void {
  checkCount(kind, count, Math.max(MAX_TENSORS, modelCount));
}

/** @throws TritonError INVALID_ARG when a request has more parts of a kind than the limit. */
export function checkCount(kind: string, count: number, limit: number): void {
  if (count <= limit) return;
  throw errorFor(
    "REQUEST_TOO_LARGE",
    `request has ${count} ${kind}, which exceeds the maximum allowed number of ${limit}`,
  );
}
