import type { Timer } from "../../clock/clock.js";
import type { Execution, ExecutionResult } from "../executor.js";

/** A batch that was sent to a worker. */
export interface BatchOfWorker {
  readonly batch: number;
  readonly execution: Execution;
  resolve(results: readonly ExecutionResult[] | undefined): void;
  reject(error: unknown): void;
}

/**
 * The batches of a worker: the running one, and those that it starts afterwards, in order. It also answers in this
 * order.
 */
export class BatchesOfWorker {
  readonly #batches: BatchOfWorker[] = [];
  #limit: Timer | undefined;
  readonly #startLimit: () => Timer | undefined;

  /** @param startLimit sets a timer for the batch that starts now */
  constructor(startLimit: () => Timer | undefined) {
    this.#startLimit = startLimit;
  }

  /** The running batch. */
  get running(): BatchOfWorker | undefined {
    return this.#batches[0];
  }

  /** All batches, running one first. */
  get all(): readonly BatchOfWorker[] {
    return [...this.#batches];
  }

  find(batch: number): BatchOfWorker | undefined {
    return this.#batches.find((one) => one.batch === batch);
  }

  add(batch: BatchOfWorker): void {
    this.#batches.push(batch);
    if (this.#batches.length === 1) this.limitBy(this.#startLimit());
  }

  /** Removes the batch that the worker has finished; the worker has started the next one. */
  takeDone(): BatchOfWorker | undefined {
    const done = this.takeLost();
    this.begin();
    return done;
  }

  /** Removes the batch that was running when the worker died. */
  takeLost(): BatchOfWorker | undefined {
    this.limitBy(undefined);
    return this.#batches.shift();
  }

  /** Removes a batch that never reached the worker. */
  remove(batch: BatchOfWorker): void {
    if (batch === this.running) this.takeDone();
    else if (this.#batches.includes(batch)) this.#batches.splice(this.#batches.indexOf(batch), 1);
  }

  /** Records that the worker starts the first of the batches held ahead. */
  begin(): void {
    if (this.running === undefined) return;
    this.running.execution.postponed?.();
    this.limitBy(this.#startLimit());
  }

  /** Sets another time limit for the running batch. */
  limitBy(limit: Timer | undefined): void {
    this.#limit?.cancel();
    this.#limit = limit;
  }

  /** Fails all batches. */
  fail(error: unknown): void {
    this.limitBy(undefined);
    for (const { reject } of this.#batches.splice(0)) reject(error);
  }
}
