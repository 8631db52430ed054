import type { ErrorCode, TritonError } from "@tritonjs/protocol";

/** Status codes of gRPC, as far as this package sends them. */
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

/** The gRPC status code of one of our error codes. */
export function statusFromCode(code: ErrorCode): number {
  return statusOfCode[code] ?? STATUS.UNKNOWN;
}

/** How a call ends. */
export interface CallStatus {
  readonly code: number;
  readonly details: string;
  /** Milliseconds after which it is worth trying again; `Infinity` when it never is. */
  readonly retryAfterMs?: number | undefined;
}

/** Most bytes of a message in its encoded form: clients refuse a header block of more than 8 KiB. */
const MAX_DETAILS = 6 * 1024;

/** The status that tells a client about an error. Its text is cut where no client would take it. */
export function statusFromError(error: TritonError): CallStatus {
  const { code, message, retryAfterMs } = error;
  return { code: statusFromCode(code), details: sendable(message), retryAfterMs };
}

/** `text` without lone surrogates, which have no encoding, and short enough for a header. */
export function sendable(text: string): string {
  let head = wellFormed(text.slice(0, MAX_DETAILS));
  if (head.length === text.length && encodeURI(head).length <= MAX_DETAILS) return head;
  while (encodeURI(head).length > MAX_DETAILS)
    head = wellFormed(head.slice(0, Math.floor(head.length * 0.9)));
  return `${head}...`;
}

function wellFormed(text: string): string {
  return Buffer.from(text, "utf8").toString("utf8");
}
