/** Names of request parameters that have a meaning in the protocol, besides those that begin with `triton_`. */
const RESERVED: ReadonlySet<string> = new Set([
  "sequence_id",
  "sequence_start",
  "sequence_end",
  "priority",
  "timeout",
  "headers",
  "binary_data_output",
]);

/** True for a name that the protocol reserves, so that users cannot give it to their parameters. */
export function isReservedParameter(name: string): boolean {
  return RESERVED.has(name) || name.startsWith("triton_");
}
