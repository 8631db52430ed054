/** Names of request parameters to which the protocol gives a meaning, beside those that begin with `triton_`. */
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
