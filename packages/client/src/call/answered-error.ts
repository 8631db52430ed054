import { TIMEOUT_TEXT, TritonError, type TritonErrorOptions } from "@tritonjs/protocol";

/**
 * Makes the error that a server answered. The protocol does not send reasons. Triton's text identifies a timeout; all
 * other errors get the general reason of their code.
 */
export function answeredError(
  code: TritonError["code"],
  message: string,
  options: Pick<TritonErrorOptions, "cause" | "retryAfterMs">,
): TritonError {
  return code === "UNAVAILABLE" && message === TIMEOUT_TEXT
    ? new TritonError(code, message, { ...options, reason: "TIMEOUT" })
    : new TritonError(code, message, options);
}
