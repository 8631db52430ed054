import { cancelled } from "../core.js";

type Signals = readonly (AbortSignal | undefined)[];

/**
 * Calls `listener` when the first of the signals aborts, at once if one has. The returned function forgets them: it
 * has to be called.
 */
export function onAbort(signals: Signals, listener: (reason: unknown) => void): () => void {
  const heard = (event: Event): void => listener((event.target as AbortSignal).reason);
  for (const signal of signals) {
    if (signal?.aborted) listener(signal.reason);
    else signal?.addEventListener("abort", heard, { once: true });
  }
  return () => {
    for (const signal of signals) signal?.removeEventListener("abort", heard);
  };
}

/** @throws TritonError CANCELLED when one of the signals has aborted. */
export function throwIfAborted(signals: Signals): void {
  const aborted = signals.find((signal) => signal?.aborted);
  if (aborted !== undefined) throw cancelled(aborted.reason);
}

/**
 * Resolves after some time.
 *
 * @throws TritonError CANCELLED when one of the signals aborts before.
 */
export async function pause(ms: number, signals: Signals): Promise<void> {
  throwIfAborted(signals);
  let forget = (): void => {};
  let timer: NodeJS.Timeout | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      timer = setTimeout(resolve, ms);
      forget = onAbort(signals, (reason) => reject(cancelled(reason)));
    });
  } finally {
    clearTimeout(timer);
    forget();
  }
}
