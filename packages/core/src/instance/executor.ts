import type { Isolation, TritonError } from "@tritonjs/protocol";
import type { BatchLayout } from "../batch/batch-layout.js";
import type { Tensors } from "../batch/merge-inputs.js";
import type { RequestScope } from "../callable/infer-context.js";
import type { ModelCaller, TensorCaller } from "../callable/model-caller.js";
import type { RESCHEDULE } from "../callable/reschedule.js";
import type { Clock } from "../clock/clock.js";

import type { RequestInfo } from "../request/request-info.js";

/** A request as an executor sees it: nothing can be done to the request through it. */
export interface ExecutableRequest extends RequestInfo, RequestScope {
  readonly inputs: Tensors;
  /** Rows that count towards the batch: at least 1. */
  readonly rows: number;
  /** Aborted when the request is given up. */
  readonly signal: AbortSignal;
}

/** Hears what becomes of the requests of a batch while they run, for an executor that works elsewhere. */
export interface ExecutionWatcher {
  /** The request at `index` was given up. Called once at most. */
  givenUp(index: number): void;
  /** No more answers to the request at `index` are wanted. What the model sends all the same is delivered. */
  askedToStop?(index: number): void;
}

/** One batch on its way through an executor. */
export interface Execution {
  readonly requests: readonly ExecutableRequest[];
  /** The inputs of all requests, where they are joined already. */
  readonly mergedInputs?: Tensors;
  /** How they are joined, and the outputs divided again; undefined where that is by rows. */
  readonly layout?: BatchLayout | undefined;
  /** Aborted when every request of the batch has been given up. Made when first asked for. */
  readonly signal: AbortSignal;
  /** Calls other models on behalf of the batch; with tensors as they are on the main thread alone. */
  readonly models: ModelCaller & Partial<TensorCaller>;
  /** Clock of the model: the real one in a worker. */
  readonly clock: Clock;
  /** Whether requests are answered by any number of responses, through the methods below. */
  readonly decoupled: boolean;
  /** The executor says when the inputs are ready for the model, and when the model has its outputs. */
  inputsReady(): void;
  outputsReady(): void;
  /** The inputs were ready earlier, but the model has been at another batch until now. */
  postponed?(): void;
  /** Tells the watcher from now on; there is one. It hears nothing of requests that are over already. */
  watch(watcher: ExecutionWatcher): void;
  /** False once the request at `index` is over: nothing need be computed for it any more. */
  isOpen(index: number): boolean;
  /** Undefined while the consumer of the request at `index` keeps up, else a promise of when it does. */
  writable(index: number): Promise<void> | undefined;
  /** Sends a response to the request at `index`. */
  send(index: number, outputs: Tensors, final?: boolean): void;
  /** Sends an error to the request at `index`; it goes on unless the error is final. */
  sendError(index: number, error: TritonError, final?: boolean): void;
  /** Ends the request at `index` without another response. */
  finish(index: number): void;
  /** The model wants to see the request at `index` again, in the next batch; for iterative sequences alone. */
  reschedule(index: number): void;
}

/** A batch as callbacks are run with it. */
export type CallbackExecution = Omit<Execution, "watch">;

/** What became of one request: its outputs, an error of its own, or that the model wants to see it again. */
export type ExecutionResult = Tensors | TritonError | typeof RESCHEDULE;

/**
 * Runs batches somewhere: on this thread, in a worker, in a process. It runs one at a time, unless it has `capacity`
 * for more, and knows neither queues nor statistics.
 */
export interface Executor {
  /** Where it runs; absent for a backend that does not say. */
  readonly isolation?: Isolation;
  /** Memory that it held after its last batch, where that is watched. */
  readonly memoryBytes?: number | undefined;
  /** What there is to say about the loaded model: `executionProvider`, for instance. */
  readonly details: Readonly<Record<string, string>>;
  /** Batches that it takes at a time. @default 1 */
  readonly capacity?: number;
  /** Whether it may be given its next batch while it runs one, to begin with it at once afterwards. @default false */
  readonly takesAhead?: boolean;
  /** Whether it runs a batch above the maximum batch size, which only a warm-up sample can make. @default false */
  readonly takesAnyBatchSize?: boolean;
  /** Gets ready to run; rejects when the model cannot be loaded. */
  start(): Promise<void>;
  /**
   * One result for each request, in order; undefined when the executor answers through `execution`, as it must
   * for a decoupled model. Rejects to fail all requests of the batch that are still open.
   */
  execute(execution: Execution): Promise<readonly ExecutionResult[] | undefined>;
  /** Asks the model whether it can be used now; rejects with why not. Absent where models cannot say. */
  checkReady?(): Promise<void>;
  /** Resolves when no request is being answered that it has returned from: absent where that cannot be. */
  drained?(): Promise<void>;
  /** Releases what the executor holds, after the batch at hand. */
  stop(): Promise<void>;
  /** True for native code, which cannot be cut off: whoever stops the executor waits for its batch. */
  readonly mustFinish: boolean;
  /**
   * Called when the executor breaks down or comes back by itself, with a reason once it could not come back.
   * Set by the instance group.
   */
  onHealth?: ((healthy: boolean, reason?: TritonError) => void) | undefined;
}
