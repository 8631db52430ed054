import { TritonError } from "@tritonjs/protocol";

const MAX_VERSION = 2n ** 63n - 1n;

/**
 * Reads a version like C++ `stol`: leading space and sign, then digits; the rest is ignored. Undefined for an empty
 * string.
 *
 * @throws TritonError INVALID_ARG if there is no 64-bit number, or a negative one.
 */
export function parseVersion(text: string): bigint | undefined {
  if (text === "") return undefined;
  const digits = /^\s*([+-]?)0*(\d+)/.exec(text);
  const version = digits === null ? MAX_VERSION + 1n : BigInt(digits[2]!.slice(0, 20));
  if (version > MAX_VERSION) {
    throw new TritonError(
      "INVALID_ARG",
      `failed to get model version from specified version string '${text}' (details: stol), ` +
        "version should be an integral value > 0",
      { reason: "INVALID_VERSION" },
    );
  }
  if (digits![1] === "-" && version > 0n) {
    throw new TritonError(
      "INVALID_ARG",
      `invalid model version specified '${text}' , version should be an integral value > 0`,
      { reason: "INVALID_VERSION" },
    );
  }
  return version;
}
