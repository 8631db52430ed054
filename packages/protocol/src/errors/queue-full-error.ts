import { errorWithoutStack } from "./error-without-stack.js";
import type { TritonError } from "./triton-error.js";

/**
 * The refusal of a request whose queue is full.
 *
 * @param id what the client calls the request; empty for none
 * @param retryAfterMs about how long until there is room
 */
export function queueFullError(id: string, retryAfterMs?: number): TritonError {
  const reason = "QUEUE_FULL";
  const options = retryAfterMs === undefined ? ({ reason } as const) : ({ reason, retryAfterMs } as const);
  const message = `[request id: ${id || "<id_unknown>"}] Exceeds maximum queue size`;
  return errorWithoutStack("UNAVAILABLE", message, options);
}
