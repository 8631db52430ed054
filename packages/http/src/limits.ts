/** Largest tensor, JSON document or raw body in bytes unless told otherwise, as Triton's `--http-max-input-size`. */
export const DEFAULT_MAX_INPUT_SIZE = 64 * 1024 * 1024;

/** Room for the JSON header of a request whose tensors take up the whole of `maxInputSize`. */
export const BODY_ALLOWANCE = 64 * 1024;

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
