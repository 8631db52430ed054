import { TritonError } from "@tritonjs/protocol";
import { type OptionsElsewhere, unknownKeys } from "./unknown-keys.js";

/**
 * Checks that an object has known options only, for callers without TypeScript.
 *
 * @param where the object in the text, such as `http()`
 * @param elsewhere options of other objects, which users may confuse with this one
 * @throws TritonError INVALID_ARG with a line for each unknown option, which proposes the one that is likely meant.
 * @example `checkOptionNames("http()", { prot: 8000 }, ["port"]) // http() has an unknown option 'prot': did you mean 'port'?`
 */
export function checkOptionNames(
  where: string,
  options: object,
  known: readonly string[],
  elsewhere?: OptionsElsewhere,
): void {
  const problems = unknownKeys(where, options, known, elsewhere);
  if (problems.length > 0) {
    throw new TritonError("INVALID_ARG", problems.join("\n"), { reason: "INVALID_OPTION" });
  }
}
