import { TritonError } from "@tritonjs/protocol";
import {
  type CommonCallOptions,
  type CommonClientOptions,
  DEFAULT_TIMEOUT_MS,
} from "../options/client-options.js";
import type { Carrier, OutgoingCall } from "./carrier.js";
import { CallDeadline, pause } from "./deadline.js";
import { rememberFailure } from "./failed-attempt.js";
import { type RetryPolicy, retryDelay, retryPolicy } from "./retry.js";

/** Makes calls over one carrier, with time limits, aborts and retries. Closing the client ends all its calls. */
export class Caller<Request extends OutgoingCall, Answer> {
  readonly #carrier: Carrier<Request, Answer>;
  readonly #timeoutMs: number;
  readonly #retry: RetryPolicy;
  readonly #closed = new AbortController();

  constructor(carrier: Carrier<Request, Answer>, options: CommonClientOptions) {
    this.#carrier = carrier;
    this.#timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    this.#retry = retryPolicy(options);
  }

  /** Makes a call, with a deadline of its own. */
  async call(request: Request, options: CommonCallOptions): Promise<Answer> {
    const deadline = this.deadline(options);
    try {
      return await this.attempt(request, deadline);
    } finally {
      deadline.end();
    }
  }

  /** Makes a call with a deadline that continues after the answer. */
  async attempt(request: Request, deadline: CallDeadline): Promise<Answer> {
    for (let attempt = 0; ; attempt++) {
      deadline.throwIfOver();
      const outcome = await this.#carrier.attempt(request, deadline);
      if ("error" in outcome) deadline.throwIfOver();
      const hint = { retryAfterMs: outcome.retryAfterMs, leftMs: deadline.leftMs };
      const delay = retryDelay(outcome.failure, attempt, request.idempotent, this.#retry, hint);
      if (delay === undefined) {
        if ("error" in outcome) throw rememberFailure(outcome.error, outcome.failure);
        return outcome.answer;
      }
      if (delay >= deadline.leftMs) throw deadline.expired();
      await pause(delay, deadline.signal);
    }
  }

  /**
   * Opens the deadline of a call: it aborts on the time limit, on the caller's signal and when the client is closed.
   * The caller must end it.
   *
   * @param defaultMs the limit of a call without one
   * @throws TritonError UNAVAILABLE when the client is closed.
   */
  deadline({ timeoutMs, signal }: CommonCallOptions, defaultMs = this.#timeoutMs): CallDeadline {
    if (this.#closed.signal.aborted)
      throw new TritonError("UNAVAILABLE", "the client is closed", { reason: "CLIENT_CLOSED" });
    return new CallDeadline(timeoutMs ?? defaultMs, signal, this.#closed.signal);
  }

  /** Ends the calls in flight with CANCELLED. Later ones fail with UNAVAILABLE. */
  close(): void {
    this.#closed.abort(
      new TritonError("CANCELLED", "the client was closed", { reason: "CLIENT_CLOSED_MEANWHILE" }),
    );
    this.#carrier.close();
  }
}
