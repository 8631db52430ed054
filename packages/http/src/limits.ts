import { constants } from "node:buffer";

/** Largest tensor of a JSON document or raw body in bytes unless told otherwise, as Triton's `--http-max-input-size`. */
export const DEFAULT_MAX_INPUT_SIZE = 64 * 1024 * 1024;

/** Room for the JSON header of a request whose tensors take up the whole of `maxInputSize`. */
export const BODY_ALLOWANCE = 64 * 1024;

/**
 * Bytes of JSON that a byte of a tensor may take: `false, ` for a BOOL has seven, and an FP32 such as
 * `-1.1754943508222875e-38, ` has 25 for its four.
 */
const JSON_BYTES_PER_TENSOR_BYTE = 8;

/** Room for padding in front of a body. */
const LARGEST_BUFFER = constants.MAX_LENGTH - 64;

/** Largest body that is read. A raw body is one tensor; in any other the tensors are measured, not their JSON. */
export function maxBodySize(maxInputSize: number, isRaw: boolean): number {
  const bytes = isRaw ? maxInputSize : maxInputSize * JSON_BYTES_PER_TENSOR_BYTE;
  return Math.min(bytes + BODY_ALLOWANCE, LARGEST_BUFFER);
}

/** Most numbers that a document with tensors may hold: an element has a byte at least. */
export function maxNumbers(maxInputSize: number): number {
  return maxInputSize + MAX_JSON_VALUES;
}

/** Most non-empty chunks of a chunked request body. */
export const MAX_CHUNKS = 65_536;

/**
 * Most values that one JSON document may hold, a tensor of numbers counting as one: each takes some hundred bytes of
 * memory, and may have taken two to send.
 */
export const MAX_JSON_VALUES = 2 ** 21;

/** Deepest nesting of a tensor's `data`. */
export const MAX_DATA_DEPTH = 100;

/** Most inputs, and most requested outputs, of a request to a model that does not have more. */
export const MAX_TENSORS = 4096;
