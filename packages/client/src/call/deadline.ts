import { cancelled, noAnswerError, onAbort, type TritonError } from "@tritonjs/protocol";

/** Timers cannot wait longer. */
const LONGEST_MS = 2 ** 31 - 1;

/**
 * What may end a call before its answer: time, and signals. Whichever comes first aborts `signal` and is told by
 * `fault`. Has to be ended.
 */
export class CallDeadline {
  readonly #controller = new AbortController();
  readonly #timeoutMs: number;
  #endsAt = 0;
  readonly #stopListening: readonly (() => void)[];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #fault: TritonError | undefined;
  #timedOut = false;

  constructor(timeoutMs: number, ...signals: readonly (AbortSignal | undefined)[]) {
    this.#timeoutMs = timeoutMs;
    const present = signals.filter((signal) => signal !== undefined);
    this.#stopListening = present.map((signal) =>
      onAbort(signal, () => this.#abort(cancelled(signal.reason))),
    );
    const aborted = present.find((signal) => signal.aborted);
    if (aborted !== undefined) this.#abort(cancelled(aborted.reason));
    this.restart();
  }

  /** Aborts when the time is over or one of the signals aborts. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Why `signal` aborted. */
  get fault(): TritonError | undefined {
    return this.#fault;
  }

  /** True when it was the time that aborted `signal`. */
  get timedOut(): boolean {
    return this.#timedOut;
  }

  /** Milliseconds that are left. */
  get leftMs(): number {
    return this.#endsAt - performance.now();
  }

  /** @throws TritonError the reason of `signal` when that has aborted. */
  throwIfOver(): void {
    if (this.#fault !== undefined) throw this.#fault;
  }

  /** The error of a call whose time is over. */
  expired(): TritonError {
    return noAnswerError(this.#timeoutMs);
  }

  /** Stops the time. */
  hold(): void {
    clearTimeout(this.#timer);
  }

  /** Starts the time over: for streams, whose parts have to come within it. */
  restart(): void {
    clearTimeout(this.#timer);
    this.#endsAt = performance.now() + this.#timeoutMs;
    if (this.#fault !== undefined || !(this.#timeoutMs <= LONGEST_MS)) return;
    this.#timer = setTimeout(() => {
      this.#timedOut = true;
      this.#abort(this.expired());
    }, this.#timeoutMs);
  }

  /** Forgets time and signals. */
  end(): void {
    clearTimeout(this.#timer);
    for (const stop of this.#stopListening) stop();
  }

  #abort(fault: TritonError): void {
    if (this.#fault !== undefined) return;
    this.#fault = fault;
    this.end();
    this.#controller.abort(fault);
  }
}

/** Resolves after some time, or rejects with the reason of `signal`. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
}
