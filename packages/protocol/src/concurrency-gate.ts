import { TritonError } from "./triton-error.js";

interface Waiter {
  enter(): void;
  refuse(error: TritonError): void;
}

/**
 * Semaphore with a queue. It runs a limited number of tasks at once, and the others wait in order:
 *
 *     run() --- fewer than maxConcurrency run ---> task ---> done: the first waiter enters
 *        \--- fewer than maxQueueSize wait ------> waiting --/
 *         \-- else ------------------------------> UNAVAILABLE
 */
export class ConcurrencyGate {
  readonly #maxConcurrency: number;
  readonly #maxQueueSize: number;
  /** Waiting tasks in order of arrival. A set, because cancelled ones leave from the middle. */
  readonly #waiting = new Set<Waiter>();
  #running = 0;
  #closed = false;
  #idle: (() => void) | undefined;
  readonly #tooMany: (limits: string) => TritonError;

  /**
   * @param tooMany makes the error of a task that cannot wait either; `limits` has the numbers of running and waiting
   * tasks
   */
  constructor(maxConcurrency: number, maxQueueSize: number, tooMany = tooManyOfClient) {
    this.#maxConcurrency = maxConcurrency;
    this.#maxQueueSize = maxQueueSize;
    this.#tooMany = tooMany;
  }

  /**
   * Runs a task when its turn comes.
   *
   * @throws TritonError UNAVAILABLE when too many tasks wait or the gate is closed, CANCELLED when `signal` aborts
   * first.
   */
  async run<T>(task: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    if (this.#closed) throw closedError();
    if (signal?.aborted) throw cancelled(signal.reason);
    if (this.#running < this.#maxConcurrency) this.#running++;
    else await this.#wait(signal);
    try {
      return await task();
    } finally {
      this.#leave();
    }
  }

  /** Rejects waiting tasks and refuses new ones. Resolves when no task runs. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const waiter of this.#waiting) waiter.refuse(closedError());
    if (this.#running === 0) return;
    await new Promise<void>((resolve) => {
      const before = this.#idle;
      this.#idle = () => {
        before?.();
        resolve();
      };
    });
  }

  #wait(signal: AbortSignal | undefined): Promise<void> {
    if (this.#waiting.size >= this.#maxQueueSize) {
      throw this.#tooMany(`${this.#maxConcurrency} run, ${this.#maxQueueSize} wait`);
    }
    return new Promise((resolve, reject) => {
      const stopWaiting = (): void => {
        this.#waiting.delete(waiter);
        stopListening?.();
      };
      const waiter: Waiter = {
        enter: () => {
          stopWaiting();
          resolve();
        },
        refuse: (error) => {
          stopWaiting();
          reject(error);
        },
      };
      const stopListening = signal && onAbort(signal, () => waiter.refuse(cancelled(signal.reason)));
      this.#waiting.add(waiter);
    });
  }

  /** Passes the place of a finished task to the first waiter, so that no later task can take it. */
  #leave(): void {
    const [next] = this.#waiting;
    if (next !== undefined) {
      next.enter();
      return;
    }
    this.#running--;
    if (this.#running === 0) this.#idle?.();
  }
}

function tooManyOfClient(limits: string): TritonError {
  return new TritonError(
    "UNAVAILABLE",
    `too many requests of this client (${limits}): send fewer at a time, or raise its limits`,
    {
      reason: "CLIENT_BUSY",
    },
  );
}

function closedError(): TritonError {
  return new TritonError("UNAVAILABLE", "the client is closed", { reason: "CLIENT_CLOSED" });
}

/*
 * Many calls may share one signal. If each added a listener to it, Node.js would report a leak from the eleventh on.
 * The library therefore adds one listener to a signal, for as long as any call waits for it.
 */
const waiting = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls `callback` when `signal` aborts, or at once if it has. The returned function removes it. */
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

/** Waits unless `signal` aborts first. The shared operation continues for its other callers. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const stopListening = onAbort(signal, () => reject(cancelled(signal.reason)));
    promise.then(resolve, reject).finally(stopListening);
  });
}

/** The longest delay of `setTimeout`, in milliseconds. A longer delay counts as none. */
export const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;
