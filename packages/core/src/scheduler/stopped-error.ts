import { TritonError } from "@tritonjs/protocol";
import type { PendingRequest } from "../request/pending-request.js";

/** The refusal of a scheduler that has been stopped. */
export function stoppedError(request: PendingRequest): TritonError {
  return new TritonError(
    "UNAVAILABLE",
    `${request.logPrefix}Server is stopping, scheduler for model has stopped accepting new inference requests`,
    { reason: "SERVER_STOPPING" },
  );
}

/** True for a request that other work waits for: it is taken also when the server stops, so that the work can end. */
export function isPartOfWork(request: PendingRequest): boolean {
  return request.callers.length > 0;
}
