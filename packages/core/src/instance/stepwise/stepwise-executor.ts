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
 * Lets requests join those that are at work in an instance: takes as many batches at a time as the model's batch has
 * rows, hands them on one by one, and is done with each when all of its requests are over.
 *
 * The executor inside runs the loop, on this thread or elsewhere: its `execute` comes back as soon as the loop has the
 * requests.
 */
export class StepwiseExecutor implements Executor {
  readonly #inner: Executor;
  #handingOver: Promise<unknown> = Promise.resolve();

  /** @param capacity requests at a time */
  constructor(
    inner: Executor,
    readonly capacity: number,
  ) {
    this.#inner = inner;
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

/** An execution that tells when all of its requests are over. */
class WatchedExecution implements Execution {
  readonly requests: readonly ExecutableRequest[];
  readonly decoupled = true;
  #tell: (() => void) | undefined;
  /** Of the executor inside. */
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

  /** Resolves when no request is open any more. Called once. */
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
