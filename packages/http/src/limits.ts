import { constants } from "node:buffer";

/** Default limit on a tensor of a JSON document or raw body in bytes, as Triton's `--http-max-input-size`. */
export const DEFAULT_MAX_INPUT_SIZE = 64 * 1024 * 1024;

/** Room for the JSON header of a request whose tensors take the whole of `maxInputSize`, in bytes. */
export const BODY_ALLOWANCE = 64 * 1024;

/**
 * Most bytes of JSON for one byte of a tensor. `false, ` for a BOOL has seven. An FP32 such as
 * `-1.1754943508222875e-38, ` has 25 for its four bytes.
 */
const JSON_BYTES_PER_TENSOR_BYTE = 8;

/** Room for padding before a body. */
const LARGEST_BUFFER = constants.MAX_LENGTH - 64;

/**
 * Size of the largest body that is read. A raw body is one tensor; in all others the limit is on the tensors, not on
 * their JSON.
 */
export function maxBodySize(maxInputSize: number, isRaw: boolean): number {
  const bytes = isRaw ? maxInputSize : maxInputSize * JSON_BYTES_PER_TENSOR_BYTE;
  return Math.min(bytes + BODY_ALLOWANCE, LARGEST_BUFFER);
}

/** Most numbers in a document with tensors: an element has at least one byte. */
export function maxNumbers(maxInputSize: number): number {
  return maxInputSize + MAX_JSON_VALUES;
}

/** Most non-empty chunks of a chunked request body. */
export const MAX_CHUNKS = 65_536;

/**
 * Most values in one JSON document, where a tensor of numbers counts as one. A value takes some hundred bytes of
 * memory, and may cost the client only two bytes.
 */
export const MAX_JSON_VALUES = 2 ** 21;

/** Deepest nesting of a tensor's `data`. */
export const MAX_DATA_DEPTH = 100;

/** Most inputs, and most requested outputs, of a request, unless its model has more. */
export const MAX_TENSORS = 4096;
