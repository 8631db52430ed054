import { type ErrorCode, TritonError } from "@tritonjs/core";

/** HTTP statuses of errors that are not the fault of the model. The page of errors lists all codes. */
const STATUSES: Partial<Record<ErrorCode, number>> = { INVALID_ARG: 400, NOT_FOUND: 404, UNAVAILABLE: 503 };

/** The status and the text with which a route answers an error: a mistake of the client is not a failure. */
export function answerTo(error: unknown): { readonly status: 400 | 404 | 503 | 500; readonly text: string } {
  const status = TritonError.is(error) ? STATUSES[error.code] : undefined;
  if (status === undefined) return { status: 500, text: "internal error" };
  return { status: status as 400 | 404 | 503, text: (error as TritonError).message };
}
