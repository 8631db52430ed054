import type { ErrorCode } from "./code.js";
import { TritonError } from "./triton-error.js";

/** Triton's words for the codes, as its log and the reasons in the repository index have them. */
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

/** An error as Triton writes it down: `Invalid argument: what is wrong`. */
export function statusText(thrown: unknown): string {
  const { code, message } = TritonError.from(thrown);
  return `${WORDS[code]}: ${message}`;
}
