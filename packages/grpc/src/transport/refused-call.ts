import { TritonError } from "@tritonjs/protocol";
import { type CallStatus, sendable, statusFromError } from "../status-from-code.js";

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
