import { status } from "@grpc/grpc-js";
import type { CallStatus } from "../../status-from-code.js";
import { TritonError } from "../core.js";

type ErrorCode = TritonError["code"];

const codes: Readonly<Record<number, ErrorCode>> = {
  [status.CANCELLED]: "CANCELLED",
  [status.INVALID_ARGUMENT]: "INVALID_ARG",
  [status.DEADLINE_EXCEEDED]: "UNAVAILABLE",
  [status.NOT_FOUND]: "NOT_FOUND",
  [status.ALREADY_EXISTS]: "ALREADY_EXISTS",
  [status.PERMISSION_DENIED]: "UNAVAILABLE",
  [status.RESOURCE_EXHAUSTED]: "UNAVAILABLE",
  [status.FAILED_PRECONDITION]: "INVALID_ARG",
  [status.ABORTED]: "UNAVAILABLE",
  [status.OUT_OF_RANGE]: "INVALID_ARG",
  [status.UNIMPLEMENTED]: "UNSUPPORTED",
  [status.INTERNAL]: "INTERNAL",
  [status.UNAVAILABLE]: "UNAVAILABLE",
  [status.DATA_LOSS]: "INTERNAL",
  [status.UNAUTHENTICATED]: "UNAVAILABLE",
};

/** The `cause` of an error that a call ended with: its status in gRPC. */
export class GrpcStatusError extends Error implements CallStatus {
  override readonly name = "GrpcStatusError";

  constructor(
    readonly code: number,
    readonly details: string,
  ) {
    super(`gRPC status ${status[code] ?? code}: ${details}`);
  }
}

/** The code behind a status. */
export function codeFromStatus(code: number): ErrorCode {
  return codes[code] ?? "UNKNOWN";
}

/** The error that a status stands for: with the server's text when it gives one, and when it says to come again. */
export function callError({
  code,
  details,
  retryAfterMs = Number.POSITIVE_INFINITY,
}: CallStatus): TritonError {
  const cause = new GrpcStatusError(code, details);
  const options = Number.isFinite(retryAfterMs) ? { cause, retryAfterMs } : { cause };
  return new TritonError(codeFromStatus(code), details === "" ? cause.message : details, options);
}

/** The error of a call whose time is over. */
export function timedOut(timeoutMs: number): TritonError {
  return new TritonError("UNAVAILABLE", `the server did not answer within ${timeoutMs} ms`, {
    reason: "CLIENT_TIMEOUT",
  });
}
