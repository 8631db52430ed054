import type { Parameters } from "./parameters.js";

/** The sequence that a request belongs to. */
export interface RequestSequence {
  /** Triton's correlation id: a non-negative integer or a string. 0 and `""` mean no sequence. */
  readonly id: number | bigint | string;
  /** True for the first request of the sequence. @default false */
  readonly start?: boolean;
  /** True for the last request of the sequence. @default false */
  readonly end?: boolean;
}

/** Options of one inference. They mean the same in process, in a callback that calls another model, and in both clients. */
export interface InferOptions {
  /** Gives the call up when it aborts: the call rejects with CANCELLED, and the model is told to stop. */
  readonly signal?: AbortSignal;
  /**
   * Milliseconds that the whole call may take, with the time in queues and all attempts of a client. A call that takes longer rejects
   * with UNAVAILABLE, and `isTimeout` is true for the error. `Infinity` means no limit.
   *
   * @default no limit in process, 60000 in the clients
   */
  readonly timeoutMs?: number;
  /**
   * Microseconds that the request may wait in the queue of its model: Triton's request parameter `timeout`. It takes effect where the
   * queue policy of the model has `allowTimeoutOverride`. A request that waits longer rejects with UNAVAILABLE, or is delayed when the
   * policy says so. 0 means the limit of the queue policy.
   *
   * @default 0
   */
  readonly queueTimeoutMicroseconds?: number;
  /** Priority level in the queue: 1 is the highest, 0 the default level of the model. @default 0 */
  readonly priority?: number;
  /** The sequence that the request belongs to, for a model with `sequence`. @default no sequence */
  readonly sequence?: RequestSequence;
  /** Id of the request. It appears in errors and traces, the callback sees it, and a server returns it. @default "" */
  readonly id?: string;
  /** Parameters for the model. Names to which the protocol gives a meaning are refused with INVALID_ARG by the clients. */
  readonly parameters?: Parameters;
}
