import type { ErrorCode } from "./code.js";
import { TritonError, type TritonErrorOptions } from "./triton-error.js";

/**
 * Makes an error without a stack trace, for failures that hit many requests at once, such as a full queue, or a client
 * that leaves with thousands of requests. The place where such an error was made has no meaning, and recording it would
 * be the most expensive part.
 */
export function errorWithoutStack<Code extends ErrorCode>(
  code: Code,
  message: string,
  options?: TritonErrorOptions<Code>,
): TritonError<Code> {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return new TritonError(code, message, options);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}
