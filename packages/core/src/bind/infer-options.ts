import type { Parameters } from "../request/parameters.js";

/** What can be said about one inference in process. */
export interface InferOptions {
  /** Gives the request up when aborted: it leaves its queue at once, a running callback sees its signal abort. */
  readonly signal?: AbortSignal;
  /** 0 for the model's default level, 1 for the highest. */
  readonly priority?: number;
  /** The request ends with UNAVAILABLE when it is not answered within this time. */
  readonly timeoutMicroseconds?: number;
  /** Shown in errors and to the callback. */
  readonly requestId?: string;
  readonly parameters?: Parameters;
  /** The sequence that the request belongs to, for models with `sequence`. 0 and "" mean none. */
  readonly sequenceId?: bigint | number | string;
  /** The first request of its sequence. */
  readonly sequenceStart?: boolean;
  /** The last request of its sequence. */
  readonly sequenceEnd?: boolean;
}
