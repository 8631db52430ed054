import { type ServiceError, status } from "@grpc/grpc-js";
import { TritonError } from "@tritonjs/protocol";
import { RETRY_PUSHBACK } from "@tritonjs/protocol/grpc";
import { answeredError, type Failure } from "../caller.js";

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

/** Reasons that a status gives. */
const reasons: Readonly<Record<number, "UNAUTHENTICATED" | "PERMISSION_DENIED">> = {
  [status.UNAUTHENTICATED]: "UNAUTHENTICATED",
  [status.PERMISSION_DENIED]: "PERMISSION_DENIED",
};

/** The `cause` of the error of a failed call: its gRPC status. */
export class GrpcStatusError extends Error implements ReceivedStatus {
  override readonly name = "GrpcStatusError";

  constructor(
    readonly code: number,
    readonly details: string,
  ) {
    super(`gRPC status ${status[code] ?? code}: ${details}`);
  }
}

/** The error code of a gRPC status. */
function codeFromGrpcStatus(code: number): ErrorCode {
  return codes[code] ?? "UNKNOWN";
}

/** Makes the error of a status, with the server's text if there is one, and with `retryAfterMs`. */
export function callError(ended: ReceivedStatus): TritonError {
  const { details, retryAfterMs = Number.POSITIVE_INFINITY } = ended;
  const cause = new GrpcStatusError(ended.code, details);
  const code = codeFromGrpcStatus(ended.code);
  const message = details === "" ? cause.message : details;
  const options = Number.isFinite(retryAfterMs) ? { cause, retryAfterMs } : { cause };
  const failure = failureOf(ended);
  if (code === "UNAVAILABLE" && (failure === "not-sent" || failure === "lost"))
    return new TritonError(code, message, { ...options, reason: "CONNECTION_FAILED" });
  return answeredError(code, message, options, reasons[ended.code]);
}

interface ReceivedStatus {
  readonly code: number;
  readonly details: string;
  /** Milliseconds after which the call may be retried; `Infinity` for never. */
  readonly retryAfterMs?: number | undefined;
}

/** Reads how a call ended. By gRPC's rule, a hint that is not a number of milliseconds means never. */
export function callStatus({ code, details, metadata }: ServiceError): ReceivedStatus {
  const pushback: string | Buffer | undefined = metadata?.get(RETRY_PUSHBACK)[0];
  if (pushback === undefined) return { code, details };
  const text = String(pushback);
  return { code, details, retryAfterMs: /^\d+$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY };
}

/** Texts of grpc-js for calls without a connection. */
const NOT_SENT = /^(No connection established|Name resolution failed)/;

/** Texts of grpc-js for calls that lost their connection, or whose proxy lost its connection to the server. */
const LOST =
  /^(Connection dropped|Stream refused|Received RST_STREAM|Received HTTP status code 502|read |write )/;

/** Kind of failure of a status; undefined for a failure that a retry would not change. */
export function failureOf({ code, details }: ReceivedStatus): Failure | undefined {
  if (code !== status.UNAVAILABLE && code !== status.INTERNAL) return undefined;
  if (NOT_SENT.test(details)) return "not-sent";
  if (LOST.test(details)) return "lost";
  return code === status.UNAVAILABLE ? "unavailable" : undefined;
}
