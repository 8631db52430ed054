/*
 * Many calls may share one signal. Each would add a listener to it, which Node.js takes for a leak from the eleventh
 * on; so a signal gets one listener, for as long as anyone waits for it.
 */
const waiting = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls `callback` when `signal` aborts; what it returns takes that back. A signal that has aborted says nothing. */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const callbacks = waiting.get(signal) ?? listen(signal);
  callbacks.add(callback);
  return () => {
    callbacks.delete(callback);
    if (callbacks.size > 0 || waiting.get(signal) !== callbacks) return;
    waiting.delete(signal);
    signal.removeEventListener("abort", aborted);
  };
}

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
