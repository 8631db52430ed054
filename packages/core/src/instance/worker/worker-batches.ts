import type { Timer } from "../../clock/clock.js";
import type { Execution, ExecutionResult } from "../executor.js";

/** A batch that a worker has. */
export interface BatchOfWorker {
  readonly batch: number;
  readonly execution: Execution;
  resolve(results: readonly ExecutionResult[] | undefined): void;
  reject(error: unknown): void;
}

/**
 * The batches that a worker has: the one that it runs, and those that it begins afterwards, in their order. It answers in
 * that order too.
 */
export class BatchesOfWorker {
  readonly #batches: BatchOfWorker[] = [];
  #limit: Timer | undefined;
  readonly #startLimit: () => Timer | undefined;

  /** @param startLimit sets a timer for the batch that begins now */
  constructor(startLimit: () => Timer | undefined) {
    this.#startLimit = startLimit;
  }

  /** The one that the worker runs. */
  get running(): BatchOfWorker | undefined {
    return this.#batches[0];
  }

  /** All of them, the one that runs first. */
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

  /** Takes the batch out that the worker is done with: it has begun the next one. */
  takeDone(): BatchOfWorker | undefined {
    const done = this.takeLost();
    this.begin();
    return done;
  }

  /** Takes the batch out with which the worker died. */
  takeLost(): BatchOfWorker | undefined {
    this.limitBy(undefined);
    return this.#batches.shift();
  }

  /** Takes a batch out that never got to the worker. */
  remove(batch: BatchOfWorker): void {
    if (batch === this.running) this.takeDone();
    else if (this.#batches.includes(batch)) this.#batches.splice(this.#batches.indexOf(batch), 1);
  }

  /** The worker begins now with the first of those that were ahead. */
  begin(): void {
    if (this.running === undefined) return;
    this.running.execution.postponed?.();
    this.limitBy(this.#startLimit());
  }

  /** Sets another limit for the batch that runs. */
  limitBy(limit: Timer | undefined): void {
    this.#limit?.cancel();
    this.#limit = limit;
  }

  /** Ends all of them with an error. */
  fail(error: unknown): void {
    this.limitBy(undefined);
    for (const { reject } of this.#batches.splice(0)) reject(error);
  }
}
