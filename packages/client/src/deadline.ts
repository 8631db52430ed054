import { cancelled, LONGEST_TIMEOUT_MS, noAnswerError, onAbort, TritonError } from "@tritonjs/protocol";

/** Time limit and signals of a call. The first aborts `signal` and is the `fault`. The owner must call `end()`. */
export class CallDeadline {
  /** True if the time limit was given, so that the server may know it. The default only guards against hanging. */
  isGiven = false;
  readonly #controller = new AbortController();
  readonly #timeoutMs: number;
  #endsAt = 0;
  readonly #stopListening: (() => void)[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #fault: TritonError | undefined;
  #timedOut = false;
  /** Called once at the end, for a carrier that follows an answer to its end. */
  onEnd: (() => void) | undefined;

  constructor(timeoutMs: number, ...signals: readonly (AbortSignal | undefined)[]) {
    this.#timeoutMs = timeoutMs;
    for (const signal of signals) {
      this.#stopListening.push(onAbort(signal, () => this.#abort(cancelled(signal!.reason))));
    }
    this.restart();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The error with which `signal` aborted. */
  get fault(): TritonError | undefined {
    return this.#fault;
  }

  /** True when the time limit aborted `signal`. */
  get timedOut(): boolean {
    return this.#timedOut;
  }

  get leftMs(): number {
    return this.#endsAt - performance.now();
  }

  /** Milliseconds left of a limit that was given; undefined for none. */
  get givenMs(): number | undefined {
    return this.isGiven && this.#timeoutMs < Number.POSITIVE_INFINITY ? Math.max(1, this.leftMs) : undefined;
  }

  /** @throws TritonError the reason of `signal` if it has aborted. */
  throwIfOver(): void {
    if (this.#fault !== undefined) throw this.#fault;
  }

  expired(): TritonError {
    return noAnswerError(this.#timeoutMs);
  }

  /** Pauses the time limit. */
  hold(): void {
    clearTimeout(this.#timer);
  }

  /** Restarts the time limit: in a stream it applies to each part. */
  restart(): void {
    clearTimeout(this.#timer);
    this.#endsAt = performance.now() + this.#timeoutMs;
    if (this.#fault !== undefined || !(this.#timeoutMs <= LONGEST_TIMEOUT_MS)) return;
    this.#timer = setTimeout(() => {
      this.#timedOut = true;
      this.#abort(this.expired());
    }, this.#timeoutMs);
  }

  end(): void {
    clearTimeout(this.#timer);
    for (const stop of this.#stopListening) stop();
    const { onEnd } = this;
    this.onEnd = undefined;
    onEnd?.();
  }

  #abort(fault: TritonError): void {
    if (this.#fault !== undefined) return;
    this.#fault = fault;
    this.end();
    this.#controller.abort(fault);
  }
}

/** Resolves after `ms` milliseconds, or rejects with the reason of `signal`. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      forget();
      resolve();
    }, ms);
    const forget = onAbort(signal, () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

interface WaitOptions {
  readonly what: string;
  readonly timeoutMs: number;
  readonly signals: readonly (AbortSignal | undefined)[];
}

/** Polls until the answer is yes, with growing pauses. A server that cannot be reached counts as a no. */
export async function waitUntil(
  isReady: (signal: AbortSignal) => Promise<boolean>,
  { what, timeoutMs, signals }: WaitOptions,
): Promise<void> {
  const deadline = new CallDeadline(timeoutMs, ...signals);
  let reason: unknown;
  try {
    for (let delay = FIRST_PAUSE_MS; ; delay = Math.min(delay * 2, LONGEST_PAUSE_MS)) {
      try {
        if (await isReady(deadline.signal)) return;
      } catch (thrown) {
        if (!TritonError.is(thrown) || thrown.code !== "UNAVAILABLE") throw thrown;
        if (deadline.fault === undefined) reason = thrown;
      }
      await pause(delay, deadline.signal);
    }
  } catch (thrown) {
    if (!deadline.timedOut) throw deadline.fault ?? thrown;
    throw new TritonError("UNAVAILABLE", `${what} was not ready within ${timeoutMs} ms`, {
      reason: "CLIENT_TIMEOUT",
      cause: reason,
    });
  } finally {
    deadline.end();
  }
}
