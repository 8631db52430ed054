import { type ErrorCode, TritonError } from "@tritonjs/protocol";

/** An error as it goes to another thread. Structured clone would lose its class. */
export interface ClonedError {
  readonly code: ErrorCode;
  readonly reason: string;
  readonly message: string;
  readonly retryAfterMs: number | undefined;
  /** Code and text of the cause, by which a failure to listen is recognised. */
  readonly cause: { readonly code: unknown; readonly message: string } | undefined;
}

/** Makes an error ready to be sent. */
export function cloneError(thrown: unknown): ClonedError {
  const { code, reason, message, retryAfterMs, cause } = TritonError.from(thrown);
  return {
    code,
    reason,
    message,
    retryAfterMs,
    cause:
      cause instanceof Error
        ? { code: (cause as NodeJS.ErrnoException).code, message: cause.message }
        : undefined,
  };
}

/** Makes the error that was sent. */
export function reviveError({ code, reason, message, retryAfterMs, cause }: ClonedError): TritonError {
  return new TritonError(code, message, {
    reason: reason as never,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(cause !== undefined && { cause: Object.assign(new Error(cause.message), { code: cause.code }) }),
  });
}
