import type { CallStatus } from "../../status-from-code.js";

/** Ends a call with a status of the transport, not of the service. */
export class RefusedCall extends Error implements CallStatus {
  constructor(
    readonly code: number,
    readonly details: string,
  ) {
    super(details);
  }
}
