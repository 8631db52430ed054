import { cancelled, onAbort } from "./abort.js";
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
