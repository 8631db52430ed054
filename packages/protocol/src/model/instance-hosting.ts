/**
 * Where an instance runs: on the thread of whoever bound the model, in a worker thread, or in a child process.
 *
 * | | a closure | a module | a model file |
 * |---|---|---|---|
 * | `inline` | always | may | never |
 * | `worker` | | by default | by default |
 * | `process` | | may | may |
 */
export type Isolation = "inline" | "worker" | "process";

/** When an instance is replaced by a new one, which starts first. */
export interface RecycleOptions {
  /** After so many requests. */
  readonly afterRequests?: number;
  /**
   * When it holds more than so many megabytes after a batch: a process all of its memory, a worker thread its heap,
   * what has not been collected yet included.
   */
  readonly aboveMemoryMb?: number;
}

/** What bounds an instance, beyond Triton's instance group. */
export interface InstanceHosting {
  /** @default "inline" for functions, "worker" for modules and model files */
  readonly isolation?: Isolation;
  /** Megabytes of JavaScript heap; one that needs more ends. Not for `inline`. @default that of Node */
  readonly heapLimitMb?: number;
  /**
   * Milliseconds that a batch may run. Then the instance is ended and started again, and the batch fails with
   * UNAVAILABLE. Not for `inline`, and for model files only with `process`. @default any time
   */
  readonly executionTimeoutMs?: number;
  /** The same for a batch whose requests have all been given up, from then on. @default any time */
  readonly abandonedTimeoutMs?: number;
  readonly recycle?: RecycleOptions;
}
