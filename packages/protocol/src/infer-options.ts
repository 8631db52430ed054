/** The sequence that a request belongs to. */
export interface RequestSequence {
  /** Triton's correlation id: a non-negative integer or a string. 0 and `""` mean no sequence. */
  readonly id: number | bigint | string;
  /** True for the first request of the sequence. @default false */
  readonly start?: boolean;
  /** True for the last request of the sequence. @default false */
  readonly end?: boolean;
}

/**
 * Options of one inference. They have the same meaning in process, in a callback that calls another model, and in both
 * clients.
 */
export interface InferOptions {
  /** Cancels the call when it aborts: the call rejects with CANCELLED, and the model is told to stop. */
  readonly signal?: AbortSignal;
  /**
   * Time limit of the whole call in milliseconds, including the time in queues and all attempts of a client. A call
   * that takes longer rejects with UNAVAILABLE, and `isTimeout` is true for the error. `Infinity` means no limit.
   *
   * @default no limit in process, 60000 in the clients
   */
  readonly timeoutMs?: number;
  /**
   * Time limit of the request in the queue of its model, in microseconds: Triton's request parameter `timeout`. It
   * takes effect if the queue policy of the model has `allowTimeoutOverride`. A request that waits longer rejects with
   * UNAVAILABLE, or is delayed if the policy demands it. 0 means the limit of the queue policy.
   *
   * @default 0
   */
  readonly queueTimeoutMicroseconds?: number;
  /** Priority level in the queue: 1 is the highest, 0 is the default level of the model. @default 0 */
  readonly priority?: number;
  /** The sequence of the request, for a model with `sequence`. @default no sequence */
  readonly sequence?: RequestSequence;
  /** Id of the request. It appears in errors and traces, the callback sees it, and a server returns it. @default "" */
  readonly id?: string;
  /** Parameters for the model. The clients refuse names that have a meaning in the protocol, with INVALID_ARG. */
  readonly parameters?: Parameters;
}

/** Value of a request or response parameter. Integers outside the safe range are bigints. */
export type ParameterValue = string | number | bigint | boolean;

/** Named parameters of a request or a response. */
export type Parameters = Readonly<Record<string, ParameterValue>>;

/** No parameters. Shared, so that a request without parameters allocates nothing. */
export const NO_PARAMETERS: Parameters = Object.freeze({});

/** Names of request parameters that have a meaning in the protocol, besides those that begin with `triton_`. */
const RESERVED: ReadonlySet<string> = new Set([
  "sequence_id",
  "sequence_start",
  "sequence_end",
  "priority",
  "timeout",
  "headers",
  "binary_data_output",
]);

/** True for a name that the protocol reserves, so that users cannot give it to their parameters. */
export function isReservedParameter(name: string): boolean {
  return RESERVED.has(name) || name.startsWith("triton_");
}
