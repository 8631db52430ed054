import type { TritonError } from "@tritonjs/protocol";
import type { Execution } from "../../instance/executor.js";

/** Batches with unanswered requests: the running batch, and batches whose response senders the model still holds. */
export class OpenBatches {
  readonly #executions = new Map<number, Execution>();
  #waiters: (() => void)[] = [];

  add(batch: number, execution: Execution): void {
    this.#executions.set(batch, execution);
  }

  /** Open batches, oldest first. */
  get executions(): Iterable<Execution> {
    return this.#executions.values();
  }

  get(batch: number): Execution | undefined {
    return this.#executions.get(batch);
  }

  /** Drops a batch whose requests are answered elsewhere. */
  forget(batch: number): void {
    this.#executions.delete(batch);
    this.#tell();
  }

  /** Drops a batch when none of its requests is open any more. */
  closeWhenOver(batch: number): void {
    const execution = this.#executions.get(batch);
    if (execution?.requests.some((_, index) => execution.isOpen(index)) ?? true) return;
    this.#executions.delete(batch);
    this.#tell();
  }

  /** Ends every open request with an error. */
  fail(error: TritonError): void {
    for (const execution of this.#executions.values()) {
      for (let index = 0; index < execution.requests.length; index++) execution.sendError(index, error, true);
    }
    this.#executions.clear();
    this.#tell();
  }

  /** Resolves when every batch is answered. */
  async whenEmpty(): Promise<void> {
    if (this.#executions.size > 0) await new Promise<void>((resolve) => this.#waiters.push(resolve));
  }

  #tell(): void {
    if (this.#executions.size > 0) return;
    for (const resolve of this.#waiters.splice(0)) resolve();
  }
}
