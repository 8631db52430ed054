import type { Isolation, TritonError } from "@tritonjs/protocol";
import type { BatchLayout } from "../batch/batch-layout.js";
import type { Tensors } from "../batch/merge-inputs.js";
import type { RequestScope } from "../callable/infer-context.js";
import type { ModelCaller, TensorCaller } from "../callable/model-caller.js";
import type { RESCHEDULE } from "../callable/reschedule.js";
import type { Clock } from "../clock/clock.js";

import type { RequestInfo } from "../request/request-info.js";

/** A request as an executor sees it, read-only. */
export interface ExecutableRequest extends RequestInfo, RequestScope {
  readonly inputs: Tensors;
  /** Rows that count towards the batch: at least 1. */
  readonly rows: number;
  /** Aborted when the request is cancelled. */
  readonly signal: AbortSignal;
}

/** Is notified of cancellations in a running batch, for an executor that works on another thread or process. */
export interface ExecutionWatcher {
  /** The request at `index` was cancelled. Called at most once. */
  givenUp(index: number): void;
  /** No more answers to the request at `index` are wanted. Answers that the model still sends are delivered. */
  askedToStop?(index: number): void;
}

/** One batch on its way through an executor. */
export interface Execution {
  readonly requests: readonly ExecutableRequest[];
  /** The inputs of all requests, if they are already joined. */
  readonly mergedInputs?: Tensors;
  /** Rules that join the inputs and split the outputs; undefined if both are done by rows. */
  readonly layout?: BatchLayout | undefined;
  /** Aborted when every request of the batch has been cancelled. Created on first use. */
  readonly signal: AbortSignal;
  /**
   * Latest deadline of the requests, in milliseconds on `clock`; undefined if a request has none, and in a worker. A
   * backend that passes the batch on passes on what is left of it.
   */
  readonly deadline?: number | undefined;
  /** Calls other models on behalf of the batch. Calls with tensors exist only on the main thread. */
  readonly models: ModelCaller & Partial<TensorCaller>;
  /** Clock of the model: the real one in a worker. */
  readonly clock: Clock;
  /** True if requests get any number of responses, through the methods below. */
  readonly decoupled: boolean;
  /**
   * Calls `fn` in the asynchronous context in which the span of the batch's first traced request is the active one.
   * Undefined if none is traced.
   */
  readonly within?: (<T>(fn: () => T) => T) | undefined;
  /**
   * Record the moments at which the inputs are ready for the model, and at which the model has its outputs. The
   * executor calls them.
   */
  inputsReady(): void;
  outputsReady(): void;
  /** Reports that the inputs were ready earlier, but the model was busy with another batch until now. */
  postponed?(): void;
  /** Sets the one watcher, which is notified from now on. It is not told of requests that are already over. */
  watch(watcher: ExecutionWatcher): void;
  /** False once the request at `index` is over, so that nothing needs to be computed for it. */
  isOpen(index: number): boolean;
  /**
   * Undefined while the consumer of the request at `index` keeps up, else a promise that resolves when it does again.
   */
  writable(index: number): Promise<void> | undefined;
  /** Sends a response to the request at `index`. */
  send(index: number, outputs: Tensors, final?: boolean): void;
  /** Sends an error to the request at `index`, which continues unless the error is final. */
  sendError(index: number, error: TritonError, final?: boolean): void;
  /** Ends the request at `index` without another response. */
  finish(index: number): void;
  /** Schedules the request at `index` for the next batch again; only for iterative sequences. */
  reschedule(index: number): void;
}

/** A batch as callback runners see it. */
export type CallbackExecution = Omit<Execution, "watch">;

/** Result of one request: its outputs, its error, or that the model wants to run it again. */
export type ExecutionResult = Tensors | TritonError | typeof RESCHEDULE;

/**
 * Runs batches on this thread, in a worker or in a process. It runs one batch at a time, unless it has `capacity` for
 * more. It knows neither queues nor statistics.
 */
export interface Executor {
  /** Where it runs; absent if the backend does not tell. */
  readonly isolation?: Isolation;
  /** Memory in use after its last batch, if it is measured. */
  readonly memoryBytes?: number | undefined;
  /** Counts the restarts after crashes; absent for executors that never restart. */
  readonly restarts?: { readonly count: number };
  /** Properties of the loaded model, for instance `executionProvider`. */
  readonly details: Readonly<Record<string, string>>;
  /** Number of batches that it takes at a time, which may change. Call `onRoom` when it has grown. @default 1 */
  readonly capacity?: number;
  /**
   * True while it starts no batch although it has capacity for one, because others need the event loop first. Call
   * `onRoom` when that is over. @default false
   */
  readonly isPausing?: boolean;
  /**
   * True if it may get its next batch while it runs one, and then starts that batch directly afterwards; or the number
   * of batches that it may get so. @default false
   */
  readonly takesAhead?: boolean | number;
  /** True if it runs batches above the maximum batch size, which only a warm-up sample can have. @default false */
  readonly takesAnyBatchSize?: boolean;
  /**
   * True if neither it nor the model reads the inputs of a batch after `execute` has returned its results, and no
   * result is a view of them: the memory of large requests is then freed. An executor that wraps this one, and keeps
   * the inputs, must say false. @default false
   */
  readonly releasesInputs?: boolean;
  /** Prepares to run; rejects if the model cannot be loaded. */
  start(): Promise<void>;
  /**
   * Runs a batch, and returns one result for each request, in order. Undefined if the executor answers through
   * `execution`, as it must for a decoupled model. A rejection fails all open requests of the batch.
   */
  execute(execution: Execution): Promise<readonly ExecutionResult[] | undefined>;
  /** Asks the model whether it can be used now; rejects with the reason if not. Absent if models cannot tell. */
  checkReady?(): Promise<void>;
  /**
   * Resolves when all requests whose `execute` has returned are answered. Absent if `execute` returns only after the
   * answers.
   */
  drained?(): Promise<void>;
  /** Releases all resources, after the current batch. */
  stop(): Promise<void>;
  /** True for native code, which cannot be interrupted, so stopping waits for its batch. */
  readonly mustFinish: boolean;
  /**
   * Called when the executor fails or recovers by itself, with a reason once it cannot recover. Set by the instance
   * group.
   */
  onHealth?: ((healthy: boolean, reason?: TritonError) => void) | undefined;
  /** Called by an executor whose capacity has grown by itself. Set by the instance group. */
  onRoom?: (() => void) | undefined;
}
