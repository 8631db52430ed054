import { TIMEOUT_TEXT, TritonError, type TritonErrorOptions } from "@tritonjs/protocol";

/**
 * Makes the error that a server answered. The protocol does not send reasons. Triton's text identifies a timeout, and
 * the status a refusal of the client itself. All other errors get the general reason of their code.
 *
 * @param reason reason that the status gives
 */
export function answeredError(
  code: TritonError["code"],
  message: string,
  options: Pick<TritonErrorOptions, "cause" | "retryAfterMs">,
  reason?: "UNAUTHENTICATED" | "PERMISSION_DENIED",
): TritonError {
  if (code === "UNAVAILABLE" && reason !== undefined)
    return new TritonError(code, message, { ...options, reason });
  return code === "UNAVAILABLE" && message === TIMEOUT_TEXT
    ? new TritonError(code, message, { ...options, reason: "TIMEOUT" })
    : new TritonError(code, message, options);
}
