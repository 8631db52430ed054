import { headerPattern } from "@tritonjs/core/frontend";
import { isReservedParameter, NO_PARAMETERS, type Parameters } from "@tritonjs/protocol";
import { invalidArgument } from "../decode/invalid-argument.js";
import type { CallHeaders } from "../transport/call.js";

/** Makes request parameters of the headers of a call. */
export type HeaderForwarding = (headers: CallHeaders) => Parameters;

/**
 * Forwards the headers whose name has a match of `pattern` anywhere, as string parameters; none without a
 * pattern. The values of a header that comes twice are one, with a comma between them.
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
