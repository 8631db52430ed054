import type { TritonError } from "@tritonjs/protocol";
import type { Tensors } from "../../batch/merge-inputs.js";
import type {
  ExecutableRequest,
  Execution,
  ExecutionResult,
  ExecutionWatcher,
  Executor,
} from "../executor.js";

/**
 * Lets requests join those that an instance already runs. It takes as many batches at a time as the model's batch has
 * rows, and passes them on one by one. A batch is done when all its requests are over.
 *
 * The inner executor runs the loop, on this thread or elsewhere: its `execute` returns as soon as the loop has the
 * requests.
 */
export class StepwiseExecutor implements Executor {
  /** Called when the capacity has grown. */
  onRoom: Executor["onRoom"];
  readonly #inner: Executor;
  readonly #capacity: () => number;
  #handingOver: Promise<unknown> = Promise.resolve();

  /** @param capacity number of requests at a time, which may change */
  constructor(inner: Executor, capacity: () => number) {
    this.#inner = inner;
    this.#capacity = capacity;
  }

  get capacity(): number {
    return this.#capacity();
  }

  get restarts(): Executor["restarts"] {
    return this.#inner.restarts;
  }

  get isolation(): Executor["isolation"] {
    return this.#inner.isolation;
  }

  get memoryBytes(): number | undefined {
    return this.#inner.memoryBytes;
  }

  get details(): Executor["details"] {
    return this.#inner.details;
  }

  get mustFinish(): boolean {
    return this.#inner.mustFinish;
  }

  set onHealth(listener: Executor["onHealth"]) {
    this.#inner.onHealth = listener;
  }

  start(): Promise<void> {
    return this.#inner.start();
  }

  stop(): Promise<void> {
    return this.#inner.stop();
  }

  async execute(execution: Execution): Promise<readonly ExecutionResult[] | undefined> {
    const watched = new WatchedExecution(execution);
    const handedOver = this.#handingOver.then(() => this.#inner.execute(watched));
    this.#handingOver = handedOver.catch(() => {});
    await handedOver;
    await watched.over();
    return undefined;
  }
}

/** An execution that reports when all of its requests are over. */
class WatchedExecution implements Execution {
  readonly requests: readonly ExecutableRequest[];
  readonly decoupled = true;
  #tell: (() => void) | undefined;
  /** Watcher of the inner executor. */
  #watcher: ExecutionWatcher | undefined;

  constructor(private readonly execution: Execution) {
    this.requests = execution.requests;
    execution.watch({
      givenUp: (index) => {
        this.#watcher?.givenUp(index);
        this.#tell?.();
      },
    });
  }

  /** Resolves when no request is open any more. Must be called only once. */
  over(): Promise<void> {
    return new Promise((resolve) => {
      this.#tell = () => {
        if (this.requests.every((_, i) => !this.isOpen(i))) resolve();
      };
      this.#tell();
    });
  }

  watch(watcher: ExecutionWatcher): void {
    this.#watcher = watcher;
  }

  get signal(): AbortSignal {
    return this.execution.signal;
  }

  get clock(): Execution["clock"] {
    return this.execution.clock;
  }

  get models(): Execution["models"] {
    return this.execution.models;
  }

  inputsReady(): void {
    this.execution.inputsReady();
  }

  outputsReady(): void {
    this.execution.outputsReady();
  }

  isOpen(index: number): boolean {
    return this.execution.isOpen(index);
  }

  writable(index: number): Promise<void> | undefined {
    return this.execution.writable(index);
  }

  send(index: number, outputs: Tensors, final?: boolean): void {
    this.execution.send(index, outputs, final);
    this.#tell?.();
  }

  sendError(index: number, error: TritonError, final?: boolean): void {
    this.execution.sendError(index, error, final);
    this.#tell?.();
  }

  finish(index: number): void {
    this.execution.finish(index);
    this.#tell?.();
  }

  reschedule(index: number): void {
    this.execution.reschedule(index);
    this.#tell?.();
  }
}
