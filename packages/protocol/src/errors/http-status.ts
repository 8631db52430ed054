import type { ErrorCode } from "./code.js";

/** Triton never answers 408, 409, 429 or 499: every code without a status of its own counts as the client's fault. */
const statuses: Readonly<Record<ErrorCode, number>> = {
  UNKNOWN: 400,
  INTERNAL: 500,
  NOT_FOUND: 404,
  INVALID_ARG: 400,
  UNAVAILABLE: 503,
  UNSUPPORTED: 501,
  ALREADY_EXISTS: 400,
  CANCELLED: 400,
};

/** The HTTP status that Triton gives an error of this code. */
export function httpStatusOf(code: ErrorCode): number {
  return statuses[code];
}
