import { TritonError } from "./triton-error.js";

/*
 * Many calls may share one signal. If each added a listener to it, Node.js would report a leak from the eleventh on.
 * The library therefore adds one listener to a signal, for as long as any call waits for it.
 */
const waiting = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls `callback` when `signal` aborts, or at once if it has already aborted. The returned function removes it.
 */
export function onAbort(signal: AbortSignal | undefined, callback: () => void): () => void {
  if (signal === undefined) return nothing;
  if (signal.aborted) {
    callback();
    return nothing;
  }
  const callbacks = waiting.get(signal) ?? listen(signal);
  callbacks.add(callback);
  return () => {
    callbacks.delete(callback);
    if (callbacks.size > 0 || waiting.get(signal) !== callbacks) return;
    waiting.delete(signal);
    signal.removeEventListener("abort", aborted);
  };
}

const nothing = (): void => {};

function listen(signal: AbortSignal): Set<() => void> {
  const callbacks = new Set<() => void>();
  waiting.set(signal, callbacks);
  signal.addEventListener("abort", aborted, { once: true });
  return callbacks;
}

function aborted(event: Event): void {
  const signal = event.target as AbortSignal;
  const callbacks = waiting.get(signal);
  waiting.delete(signal);
  for (const callback of callbacks ?? []) callback();
}

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
    const stopListening = onAbort(signal, () => reject(cancelled(signal.reason)));
    promise.then(resolve, reject).finally(stopListening);
  });
}

/** The longest delay of `setTimeout`, in milliseconds. A longer delay counts as none. */
export const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;
