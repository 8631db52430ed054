import { TritonError } from "../errors/triton-error.js";
import { onAbort } from "./abort-listener.js";

/**
 * Makes the error of a call that a signal has cancelled. Its name is `AbortError` and its cause is the abort reason. If
 * the abort reason is a `TritonError`, it is used.
 */
export function cancelled(reason: unknown): TritonError {
  return TritonError.is(reason)
    ? reason
    : new TritonError("CANCELLED", "the request was cancelled", { name: "AbortError", cause: reason });
}

/**
 * Waits for the promise unless `signal` aborts first. The shared operation behind it continues for its other callers.
 */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    if (signal.aborted) reject(cancelled(signal.reason));
    const stopListening = onAbort(signal, () => reject(cancelled(signal.reason)));
    promise.then(resolve, reject).finally(stopListening);
  });
}
