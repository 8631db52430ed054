import { errorWithoutStack } from "./error-without-stack.js";
import type { TritonError } from "./triton-error.js";

/**
 * The refusal of a request whose queue is full.
 *
 * @param id id that the client gave the request; empty for none
 * @param retryAfterMs approximate time until there is room, in milliseconds
 */
export function queueFullError(id: string, retryAfterMs?: number): TritonError {
  const reason = "QUEUE_FULL";
  const options = retryAfterMs === undefined ? ({ reason } as const) : ({ reason, retryAfterMs } as const);
  const message = `[request id: ${id || "<id_unknown>"}] Exceeds maximum queue size`;
  return errorWithoutStack("UNAVAILABLE", message, options);
}
