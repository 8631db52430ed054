import { isReservedParameter, type Parameters, type ParameterValue, TritonError } from "@tritonjs/protocol";

/**
 * Adds the headers with matching names to the parameters for the model, as strings under the names that the client
 * sent.
 *
 * @param rawHeaders names and values in turn
 * @throws TritonError INVALID_ARG for a matching header with a reserved name.
 */
export function forwardHeaders(
  rawHeaders: readonly string[],
  pattern: RegExp,
  parameters: Parameters,
): Parameters {
  const all: Record<string, ParameterValue> = Object.assign(Object.create(null), parameters);
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    if (!pattern.test(name)) continue;
    if (isReservedParameter(name)) {
      throw new TritonError(
        "INVALID_ARG",
        `Header '${name}' is reserved for Triton usage and cannot be forwarded.`,
        { reason: "INVALID_PARAMETER" },
      );
    }
    all[name] = rawHeaders[i + 1]!;
  }
  return all;
}
