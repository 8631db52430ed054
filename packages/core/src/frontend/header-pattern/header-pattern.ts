import { TritonError } from "@tritonjs/protocol";
import { translatePattern } from "./translate-pattern.js";

/** Case does not count unless the pattern says so, as tritonserver puts it before each pattern. */
const PREFIX = "(?i)";

/**
 * Reads the pattern of headers that are forwarded to models. A string is in the syntax of RE2, as for tritonserver.
 * Upper and lower case are one in either form; the pattern may be found anywhere in the name of a header.
 *
 * @returns an expression without state, or undefined for no pattern and an empty one
 * @throws TritonError INVALID_ARG with RE2's reason for a string that is not a pattern.
 */
export function headerPattern(pattern: string | RegExp | undefined): RegExp | undefined {
  if (pattern === undefined || pattern === "") return undefined;
  if (typeof pattern !== "string")
    return new RegExp(pattern.source, `${pattern.flags.replace(/[giy]/g, "")}i`);
  try {
    return new RegExp(translatePattern(PREFIX + pattern));
  } catch (cause) {
    const { message } = cause as Error;
    throw new TritonError("INVALID_ARG", `Error parsing '${PREFIX}${pattern}': ${message}`, {
      reason: "INVALID_OPTION",
      cause,
    });
  }
}
