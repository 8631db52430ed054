import { headerPattern } from "@tritonjs/core/frontend";
import { isReservedParameter, NO_PARAMETERS, type Parameters } from "@tritonjs/protocol";
import { invalidArgument } from "../decode/invalid-argument.js";
import type { CallHeaders } from "../transport/call.js";

/** Converts headers of a call to request parameters. */
export type HeaderForwarding = (headers: CallHeaders) => Parameters;

/**
 * Forwards headers with a name that matches `pattern` anywhere, as string parameters; none without a pattern. If a
 * header comes twice, its values are joined with a comma.
 *
 * @throws TritonError INVALID_ARG for a header with a reserved name.
 */
export function headerForwarding(pattern: string | RegExp | undefined): HeaderForwarding {
  const matcher = headerPattern(pattern);
  if (matcher === undefined) return () => NO_PARAMETERS;
  return (headers) => {
    const forwarded: [string, string][] = [];
    for (const [name, value] of headers.entries()) {
      if (!matcher.test(name)) continue;
      if (isReservedParameter(name)) {
        throw invalidArgument(
          `Header '${name}' is reserved for Triton usage and cannot be forwarded.`,
          "INVALID_PARAMETER",
        );
      }
      forwarded.push([name, value]);
    }
    return forwarded.length === 0 ? NO_PARAMETERS : Object.fromEntries(forwarded);
  };
}
