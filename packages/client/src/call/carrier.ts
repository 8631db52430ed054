import type { TritonError } from "@tritonjs/protocol";
import type { CallDeadline } from "./deadline.js";
import type { Failure } from "./retry.js";

/** The part of a request that the retry loop uses. */
export interface OutgoingCall {
  /** True when sending the request twice has the same effect as sending it once. */
  readonly idempotent: boolean;
}

/** Whether a call only reads, or may change something at the server. A call that only reads is idempotent. */
export type Effect = "reads" | "changes";

/** Outcome of one attempt: the answer or the error. The call settles with it unless it is retried. */
export type Attempt<Answer> = {
  /** How the attempt failed; undefined for an outcome that a retry would not change. */
  readonly failure?: Failure | undefined;
  /** Milliseconds before which the server wants no retry; `Infinity` for no retry at all. */
  readonly retryAfterMs?: number | undefined;
} & ({ readonly answer: Answer } | { readonly error: TritonError });

/** Sends requests over one protocol. `Caller` handles retries, time limits and aborts. */
export interface Carrier<Request extends OutgoingCall, Answer> {
  /**
   * Makes one attempt, which ends early when the signal of `deadline` aborts.
   *
   * @throws TritonError for a request that cannot be sent.
   */
  attempt(request: Request, deadline: CallDeadline): Promise<Attempt<Answer>>;
}
