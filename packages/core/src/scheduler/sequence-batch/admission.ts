import { TritonError } from "@tritonjs/protocol";
import type { PendingRequest } from "../../request/pending-request.js";

/** True if a request names its sequence. */
export function hasCorrelationId({ correlationId: id }: PendingRequest): boolean {
  return id !== undefined && id !== 0n && id !== "";
}

/**
 * Returns the correlation id of a request that may join a sequence.
 *
 * @throws TritonError INVALID_ARG for more than one row, and for a request without an id.
 */
export function admittedId(request: PendingRequest, modelName: string): bigint | string {
  if (request.batchSize > 1) {
    throw new TritonError(
      "INVALID_ARG",
      `inference request to model '${modelName}' must specify batch-size 1 due to requirements of sequence batcher`,
      { reason: "INVALID_SEQUENCE" },
    );
  }
  if (request.correlationId === undefined || !hasCorrelationId(request)) {
    throw new TritonError(
      "INVALID_ARG",
      `inference request to model '${modelName}' must specify a non-zero or non-empty correlation ID`,
      { reason: "INVALID_SEQUENCE" },
    );
  }
  return request.correlationId;
}

/** The error of a request whose sequence has not begun, or is over. */
export function startMissingError(id: bigint | string, modelName: string): TritonError {
  return new TritonError(
    "INVALID_ARG",
    `inference request for sequence ${id} to model '${modelName}' must specify the START flag on the first request ` +
      "of the sequence",
    { reason: "INVALID_SEQUENCE" },
  );
}
