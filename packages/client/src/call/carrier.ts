import type { TritonError } from "@tritonjs/protocol";
import type { CallDeadline } from "./deadline.js";
import type { Failure } from "./retry.js";

/** What the retry loop needs to know of a request. */
export interface OutgoingCall {
  /** True when sending the request twice has the effect of sending it once. */
  readonly idempotent: boolean;
}

/** Whether a call only reads or may change something at the server. One that only reads is idempotent. */
export type Effect = "reads" | "changes";

/** What came of one attempt: the answer or the error that the call settles with unless it is tried again. */
export type Attempt<Answer> = {
  /** How the attempt failed; undefined for an outcome that another attempt would not change. */
  readonly failure?: Failure | undefined;
  /** Milliseconds for which the server wants no other attempt; `Infinity` for ever. */
  readonly retryAfterMs?: number | undefined;
} & ({ readonly answer: Answer } | { readonly error: TritonError });

/** Moves requests over one protocol. Retries, time limits and aborts are the business of `Caller`. */
export interface Carrier<Request extends OutgoingCall, Answer> {
  /**
   * Makes one attempt, which ends early when the signal of `deadline` aborts.
   *
   * @throws TritonError for a request that cannot be sent.
   */
  attempt(request: Request, deadline: CallDeadline): Promise<Attempt<Answer>>;
}
