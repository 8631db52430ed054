import { type ErrorCode, type ReasonOf, reasonStatus, TritonError } from "@tritonjs/protocol";

/** gRPC status codes that this package sends. */
export const STATUS = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  RESOURCE_EXHAUSTED: 8,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
} as const;

const statusOfCode: Record<ErrorCode, number> = {
  UNKNOWN: STATUS.UNKNOWN,
  INTERNAL: STATUS.INTERNAL,
  NOT_FOUND: STATUS.NOT_FOUND,
  INVALID_ARG: STATUS.INVALID_ARGUMENT,
  UNAVAILABLE: STATUS.UNAVAILABLE,
  UNSUPPORTED: STATUS.UNIMPLEMENTED,
  ALREADY_EXISTS: STATUS.ALREADY_EXISTS,
  CANCELLED: STATUS.CANCELLED,
};

/** Names of all status codes of gRPC, by their numbers. */
const NAMES = [
  ...["OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS"],
  ...["PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE"],
  ...["UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"],
];

export function statusName(code: number): string {
  return NAMES[code] ?? String(code);
}

export interface CallStatus {
  readonly code: number;
  readonly details: string;
  /** Milliseconds after which a retry makes sense; `Infinity` for never. */
  readonly retryAfterMs?: number | undefined;
}

/** Longest encoded status text in bytes: clients reject a header block of more than 8 KiB. */
const MAX_DETAILS = 6 * 1024;

/** Converts an error to a status. A text that is too long for clients is cut. */
export function statusFromError(error: TritonError): CallStatus {
  const { code, reason, message, retryAfterMs } = error;
  return {
    code: reasonStatus(reason)?.grpc ?? statusOfCode[code] ?? STATUS.UNKNOWN,
    details: sendable(message),
    retryAfterMs,
  };
}

/** Makes a text fit for a header: cuts it to the longest size, and removes lone surrogates, which have no encoding. */
function sendable(text: string): string {
  let head = wellFormed(text.slice(0, MAX_DETAILS));
  if (head.length === text.length && encodeURI(head).length <= MAX_DETAILS) return head;
  while (encodeURI(head).length > MAX_DETAILS)
    head = wellFormed(head.slice(0, Math.floor(head.length * 0.9)));
  return `${head}...`;
}

function wellFormed(text: string): string {
  return Buffer.from(text, "utf8").toString("utf8");
}

/** Ends a call with a status of the transport, not of the service. */
export class RefusedCall extends Error implements CallStatus {
  /** Cut to a length that clients accept: it often quotes text of the client. */
  readonly details: string;

  constructor(
    readonly code: number,
    details: string,
  ) {
    super(details);
    this.details = sendable(details);
  }
}

/** The status that ends a call after an error of the transport or of a handler. */
export function statusOfFailure(error: unknown): CallStatus {
  return error instanceof RefusedCall ? error : statusFromError(TritonError.from(error));
}

export function invalidArgument(message: string, reason?: ReasonOf<"INVALID_ARG">): TritonError {
  return new TritonError("INVALID_ARG", message, reason === undefined ? {} : { reason });
}
