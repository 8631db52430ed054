/** Value of a request or response parameter. Integers outside the safe range are bigints. */
export type ParameterValue = string | number | bigint | boolean;

/** Named parameters of a request or a response. */
export type Parameters = Readonly<Record<string, ParameterValue>>;

/** Names that the protocol gives a meaning, beside those that begin with `triton_`. */
const RESERVED: ReadonlySet<string> = new Set([
  "sequence_id",
  "sequence_start",
  "sequence_end",
  "priority",
  "timeout",
  "headers",
  "binary_data_output",
]);

/** True for a name that no parameter of a user's own may have. */
export function isReservedParameter(name: string): boolean {
  return RESERVED.has(name) || name.startsWith("triton_");
}

/** No parameters: shared, so that a request without any costs nothing. */
export const NO_PARAMETERS: Parameters = Object.freeze({});
