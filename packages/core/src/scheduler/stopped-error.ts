import { TritonError } from "@tritonjs/protocol";
import type { PendingRequest } from "../request/pending-request.js";

/** The error of a request that arrives after the scheduler was stopped. */
export function stoppedError(request: PendingRequest): TritonError {
  return new TritonError(
    "UNAVAILABLE",
    `${request.logPrefix}Server is stopping, scheduler for model has stopped accepting new inference requests`,
    { reason: "SERVER_STOPPING" },
  );
}

/**
 * True for a request that other work waits for. It is accepted even while the server stops, so that the work can
 * finish.
 */
export function isPartOfWork(request: PendingRequest): boolean {
  return request.callers.length > 0;
}
