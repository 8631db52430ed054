import type { ErrorCode } from "./code.js";
import { TritonError } from "./triton-error.js";

/**
 * An error for something that is nobody's fault and happens to many requests at once, as when a client with thousands
 * of them leaves. Where it was made says nothing, and would cost more than all the rest.
 */
export function errorWithoutStack(code: ErrorCode, message: string): TritonError {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return new TritonError(code, message);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}
