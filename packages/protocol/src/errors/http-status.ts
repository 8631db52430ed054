import type { ErrorCode } from "./code.js";
import type { ErrorReason } from "./error-reasons.js";
import { reasonStatus } from "./reason-status.js";

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

/** The HTTP status of an error: that of its reason if it has one, else the one that Triton gives its code. */
export function httpStatusOf(code: ErrorCode, reason?: ErrorReason): number {
  return (reason === undefined ? undefined : reasonStatus(reason)?.http) ?? statuses[code];
}
