import type { InferenceRequest, SchedulerExtra } from "@tritonjs/core/extension";

/** State of a caller in the queue of one model. */
export interface CallerShare {
  readonly account: CallerAccount;
  /** Number of its requests in the queue of the model. */
  waiting: number;
  /** Rows that it has sent to the model since a time, and in the window before. */
  rows: number;
  rowsBefore: number;
  since: number;
  /** True if it lately sent no more than its share of the model. */
  isSmall: boolean;
}

/** Account of a caller, with one model or with all that share their accounts. */
export interface CallerAccount {
  readonly name: string;
  readonly weight: number;
  /** Virtual time at which its last request is over. */
  finish: number;
  /** Number of models that know the caller. */
  models: number;
}

/** What the queue keeps with a request. */
export interface Urgency extends SchedulerExtra {
  /** When the answer is due: milliseconds on the model's clock, infinite for never. */
  due: number;
  /** Place in the order of the queue: `due`, or a virtual time where callers share the model. */
  order: number;
  /** Number of the request in the order of arrival. */
  readonly ticket: number;
  /** The caller that is charged, where callers share the model. */
  share: CallerShare | undefined;
  /** Amount that the caller was charged when the request joined the queue. */
  charge: number;
}

/** The urgency of a request that the queue has, or had. */
export function urgencyOf(request: InferenceRequest): Urgency {
  return request.extra as Urgency;
}

/** When the answer to a request is due; infinite for one that never was in the queue. */
export function dueOf({ extra }: InferenceRequest): number {
  return (extra as Urgency | undefined)?.due ?? Number.POSITIVE_INFINITY;
}
