import type { RequestSequence, TritonError } from "@tritonjs/protocol";
import type { CallDeadline } from "./deadline.js";
import type { Failure } from "./retry.js";

/** The part of a request that the retry loop uses, and the choice among several servers. */
export interface OutgoingCall {
  /** True when sending the request twice has the same effect as sending it once. */
  readonly idempotent: boolean;
  /** True for an inference, which any of several servers may get. Other calls go to the first of them. */
  readonly balanced?: boolean | undefined;
  /** Sequence of an inference, all of which goes to one server. */
  readonly sequence?: RequestSequence | undefined;
}

/**
 * Whether a call only reads, infers, or may change something at the server. A call that only reads is idempotent. Any of
 * several servers may get an inference.
 */
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
  /**
   * Makes one attempt, which ends early when the signal of `deadline` aborts.
   *
   * @throws TritonError for a request that cannot be sent.
   */
  attempt(request: Request, deadline: CallDeadline): Promise<Attempt<Answer>>;
  /** Closes the connections. */
  close(): void;
}
