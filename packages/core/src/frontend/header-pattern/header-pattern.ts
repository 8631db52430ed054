import { TritonError } from "@tritonjs/protocol";
import { translatePattern } from "./translate-pattern.js";

/** Prefix that makes patterns case-insensitive by default. tritonserver puts it before each pattern. */
const PREFIX = "(?i)";

/**
 * Reads the pattern of headers that are forwarded to models. A string has the syntax of RE2, as for tritonserver.
 * Strings and expressions are case-insensitive. The pattern may match anywhere in the name of a header.
 *
 * @returns a stateless expression; undefined without a pattern, or with an empty one
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
