import {
  LONGEST_TIMEOUT_MS,
  type RequestSequence,
  TIMEOUT_TEXT,
  TritonError,
  type TritonErrorOptions,
} from "@tritonjs/protocol";
import { CallDeadline, pause } from "./deadline.js";
import { type CommonCallOptions, type CommonClientOptions, DEFAULT_TIMEOUT_MS } from "./options.js";

/** Makes calls over one carrier, with time limits, aborts and retries. Closing the client ends all its calls. */
export class Caller<Request extends OutgoingCall, Answer> {
  readonly #carrier: Carrier<Request, Answer>;
  readonly #timeoutMs: number | undefined;
  readonly #retry: RetryPolicy;
  readonly #closed = new AbortController();

  constructor(carrier: Carrier<Request, Answer>, options: CommonClientOptions) {
    this.#carrier = carrier;
    this.#timeoutMs = options.timeoutMs;
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
  deadline(
    { timeoutMs, signal }: CommonCallOptions,
    defaultMs = this.#timeoutMs ?? DEFAULT_TIMEOUT_MS,
  ): CallDeadline {
    if (this.#closed.signal.aborted)
      throw new TritonError("UNAVAILABLE", "the client is closed", { reason: "CLIENT_CLOSED" });
    const deadline = new CallDeadline(timeoutMs ?? defaultMs, signal, this.#closed.signal);
    deadline.isGiven = timeoutMs !== undefined || defaultMs === this.#timeoutMs;
    return deadline;
  }

  /** Ends the calls in flight with CANCELLED. Later ones fail with UNAVAILABLE. */
  close(): void {
    this.#closed.abort(
      new TritonError("CANCELLED", "the client was closed", { reason: "CLIENT_CLOSED_MEANWHILE" }),
    );
    this.#carrier.close();
  }
}

/** The part of a request that the retry loop uses, and the choice among several servers. */
export interface OutgoingCall {
  /** True when sending the request twice has the same effect as sending it once. */
  readonly idempotent: boolean;
  /** True for an inference, which any of several servers may get. Other calls go to the first of them. */
  readonly balanced?: boolean | undefined;
  /** Sequence of an inference, all of which goes to one server. */
  readonly sequence?: RequestSequence | undefined;
}

/** A call that only reads is idempotent. Any of several servers may get an inference. */
export type Effect = "reads" | "infers" | "changes";

/** Outcome of one attempt: the answer or the error. The call settles with it unless it is retried. */
export type Attempt<Answer> = {
  /** How the attempt failed; undefined for an outcome that a retry would not change. */
  readonly failure?: Failure | undefined;
  /** Milliseconds before which the server wants no retry; `Infinity` for no retry at all. */
  readonly retryAfterMs?: number | undefined;
} & ({ readonly answer: Answer } | { readonly error: TritonError });

/** Sends requests over one protocol. `Caller` handles retries, time limits and aborts. */
export interface Carrier<Request extends OutgoingCall, Answer> {
  /** Makes one attempt, which ends early when the signal of `deadline` aborts. */
  attempt(request: Request, deadline: CallDeadline): Promise<Attempt<Answer>>;
  close(): void;
}

/** How an attempt failed: before anything was sent, without an answer, or with UNAVAILABLE from the server. */
export type Failure = "not-sent" | "lost" | "unavailable";

export interface RetryPolicy {
  /** Attempts after the first. */
  readonly retries: number;
  readonly delayMs: number;
  /** Whether to retry after the answer that the server is not available. */
  readonly unavailable: boolean;
}

/** The server's hint about the next attempt, and the time left for it. */
interface RetryHint {
  /** Milliseconds that the server asks to wait; `Infinity` for no retry at all. */
  readonly retryAfterMs: number | undefined;
  /** Milliseconds until the time limit of the call. */
  readonly leftMs: number;
}

const MAX_DELAY_MS = 5_000;

/** Enough for a server that restarts or a closed connection, and too few to add to an overload. */
const DEFAULT_RETRIES = 2;

/** Long enough for a listening socket to come back, short enough not to be felt. */
const DEFAULT_RETRY_DELAY_MS = 100;

export function retryPolicy({ retries, retryDelayMs, retryUnavailable }: CommonClientOptions): RetryPolicy {
  return {
    retries: retries ?? DEFAULT_RETRIES,
    delayMs: retryDelayMs ?? DEFAULT_RETRY_DELAY_MS,
    unavailable: retryUnavailable ?? false,
  };
}

/**
 * Milliseconds to wait before the next attempt; undefined for no further attempt.
 *
 * @param failure undefined for a failure that a retry would not change
 * @param attempt number of attempts before the failed one
 * @param idempotent whether sending the request twice has the same effect as sending it once
 * @param hint a server that names a time is not asked before it. If that is too late for the call, there is no retry
 */
export function retryDelay(
  failure: Failure | undefined,
  attempt: number,
  idempotent: boolean,
  { retries, delayMs, unavailable }: RetryPolicy,
  hint?: RetryHint,
): number | undefined {
  if (failure === undefined) return undefined;
  const safe = failure === "not-sent" || (failure === "lost" ? idempotent : unavailable);
  if (!safe || attempt >= retries) return undefined;
  const delay = Math.min(delayMs * 2 ** attempt, MAX_DELAY_MS);
  if (hint?.retryAfterMs === undefined) return delay;
  const { retryAfterMs, leftMs } = hint;
  return retryAfterMs < leftMs && retryAfterMs <= LONGEST_TIMEOUT_MS
    ? Math.max(delay, retryAfterMs)
    : undefined;
}

/** Failures of calls by their errors. A model elsewhere decides by them about its replicas. */
const failures = new WeakMap<object, Failure>();

/** Remembers how the call failed that rejects with `error`. */
export function rememberFailure(error: TritonError, failure: Failure | undefined): TritonError {
  if (failure !== undefined) failures.set(error, failure);
  return error;
}

/** How the call failed that rejected with `error`; undefined for a failure that a retry would not change. */
export function failureOfError(error: object): Failure | undefined {
  return failures.get(error);
}

/**
 * Makes the error that a server answered. The protocol does not send reasons. Triton's text identifies a timeout, and
 * the status a refusal of the client itself. All other errors get the general reason of their code.
 *
 * @param reason reason that the status gives
 */
export function answeredError(
  code: TritonError["code"],
  message: string,
  options: Pick<TritonErrorOptions, "cause" | "retryAfterMs">,
  reason?: "UNAUTHENTICATED" | "PERMISSION_DENIED",
): TritonError {
  if (code !== "UNAVAILABLE") return new TritonError(code, message, options);
  const why = reason ?? (message === TIMEOUT_TEXT ? "TIMEOUT" : code);
  return new TritonError(code, message, { ...options, reason: why });
}

export function invalidAnswer(message: string, cause?: unknown): TritonError {
  return new TritonError("INTERNAL", message, { reason: "INVALID_ANSWER", cause });
}
