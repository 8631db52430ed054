import type { ErrorCode } from "./code.js";
import { TritonError } from "./triton-error.js";

/** Triton's texts for the codes, as in its log and in the reasons of the repository index. */
const WORDS: Readonly<Record<ErrorCode, string>> = {
  UNKNOWN: "Unknown",
  INTERNAL: "Internal",
  NOT_FOUND: "Not found",
  INVALID_ARG: "Invalid argument",
  UNAVAILABLE: "Unavailable",
  UNSUPPORTED: "Unsupported",
  ALREADY_EXISTS: "Already exists",
  CANCELLED: "Cancelled",
};

/** Formats an error as Triton does: `Invalid argument: <message>`. */
export function statusText(thrown: unknown): string {
  const { code, message } = TritonError.from(thrown);
  return `${WORDS[code]}: ${message}`;
}
