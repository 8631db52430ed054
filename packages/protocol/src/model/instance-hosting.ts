/**
 * Where an instance runs: on the thread that bound the model, in a worker thread, or in a child process.
 *
 * | | a closure | a module | a model file |
 * |---|---|---|---|
 * | `inline` | always | optional | never |
 * | `worker` | | by default | by default |
 * | `process` | | optional | optional |
 */
export type Isolation = "inline" | "worker" | "process";

/** When an instance is replaced by a new one. The new one starts first. */
export interface RecycleOptions {
  /** Number of requests after which the instance is replaced. */
  readonly afterRequests?: number;
  /**
   * Memory after a batch above which the instance is replaced, in megabytes. For a process it is all memory. For a
   * worker thread it is the heap, including garbage that has not been collected.
   */
  readonly aboveMemoryMb?: number;
}

/** Where an instance runs and its limits, beyond Triton's instance group. */
export interface InstanceHosting {
  /** Where the instance runs. @default "inline" for functions, "worker" for modules and model files */
  readonly isolation?: Isolation;
  /**
   * Limit of the JavaScript heap in megabytes. The instance is ended when it exceeds the limit. Not for `inline`.
   * @default Node's own limit
   */
  readonly heapLimitMb?: number;
  /**
   * Time limit of a batch, in milliseconds. When a batch exceeds it, the instance is ended and restarted, and the batch
   * fails with UNAVAILABLE. Not for `inline`, and for model files only with `process` or the ONNX engine `native`,
   * which ends only the batch. @default no limit
   */
  readonly executionTimeoutMs?: number;
  /**
   * Time limit of a batch after all of its requests have been cancelled, in milliseconds. Otherwise like
   * `executionTimeoutMs`. @default no limit
   */
  readonly abandonedTimeoutMs?: number;
  readonly recycle?: RecycleOptions;
}
