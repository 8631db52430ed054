import type { Tensor } from "@tritonjs/protocol";
import type { ExpectedOutput } from "../data/data-set.js";

/** Outputs that responses must have, by payload. */
export type ExpectedOutputs = readonly (readonly ExpectedOutput[] | undefined)[];

/** Start of the text of a response with other outputs; perf_analyzer's. */
export const WRONG_OUTPUT = "Output doesn't match expected output";

/** Why outputs differ from the expected ones; undefined if they are equal byte by byte. */
export function outputFault(
  expected: readonly ExpectedOutput[],
  outputs: ReadonlyMap<string, Pick<Tensor, "bytes">>,
): string | undefined {
  for (const { name, bytes } of expected) {
    const output = outputs.get(name);
    if (output === undefined)
      return `${WRONG_OUTPUT}: '${name}': expected ${bytes.length} bytes, got no such output`;
    if (output.bytes.length !== bytes.length)
      return `${WRONG_OUTPUT}: '${name}': expected ${bytes.length} bytes, ` + `got ${output.bytes.length}`;
    if (Buffer.compare(output.bytes, bytes) !== 0) return `${WRONG_OUTPUT}: '${name}': its values differ`;
  }
  return undefined;
}
