import type { ErrorCode } from "./code.js";
import { TritonError, type TritonErrorOptions } from "./triton-error.js";

/**
 * An error for something that is nobody's fault and happens to many requests at once, as when a client with thousands
 * of them leaves, or when a queue is full. Where it was made says nothing, and would cost more than all the rest.
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
