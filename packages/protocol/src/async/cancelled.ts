import { TritonError } from "../errors/triton-error.js";
import { onAbort } from "./abort-listener.js";

/** The error of a call that a signal ended; a signal may bring an error of its own. */
export function cancelled(reason: unknown): TritonError {
  return TritonError.is(reason)
    ? reason
    : new TritonError("CANCELLED", "the request was cancelled", { cause: reason });
}

/** The promise, unless `signal` aborts first: what others wait for too goes on. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    if (signal.aborted) reject(cancelled(signal.reason));
    const stopListening = onAbort(signal, () => reject(cancelled(signal.reason)));
    promise.then(resolve, reject).finally(stopListening);
  });
}
