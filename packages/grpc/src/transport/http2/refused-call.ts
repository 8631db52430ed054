import { type CallStatus, sendable } from "../../status-from-code.js";

/** Ends a call with a status of the transport, not of the service. */
export class RefusedCall extends Error implements CallStatus {
  /** Cut to what a client takes: it often quotes what the client sent. */
  readonly details: string;

  constructor(
    readonly code: number,
    details: string,
  ) {
    super(details);
    this.details = sendable(details);
  }
}
