import type { Tensor } from "@tritonjs/protocol";
import type { ExpectedOutput } from "../data/data-set.js";

/** Outputs that responses must have, by payload. */
export type ExpectedOutputs = readonly (readonly ExpectedOutput[] | undefined)[];

/** Why outputs differ from the expected ones; undefined if they are equal byte by byte. */
export function outputFault(
  expected: readonly ExpectedOutput[],
  outputs: ReadonlyMap<string, Pick<Tensor, "bytes">>,
): string | undefined {
  for (const { name, bytes } of expected) {
    const output = outputs.get(name);
    if (output === undefined)
      return `Output doesn't match expected output: '${name}': expected ${bytes.length} bytes, got no such output`;
    if (output.bytes.length !== bytes.length)
      return (
        `Output doesn't match expected output: '${name}': expected ${bytes.length} bytes, ` +
        `got ${output.bytes.length}`
      );
    if (Buffer.compare(output.bytes, bytes) !== 0)
      return `Output doesn't match expected output: '${name}': its values differ`;
  }
  return undefined;
}
