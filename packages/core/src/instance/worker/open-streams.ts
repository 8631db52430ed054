import type { TritonError } from "@tritonjs/protocol";
import type { Execution } from "../executor.js";
import { type FromWorker, unpackError, unpackOutputs } from "./messages.js";

/** The main thread's side of the batches of a decoupled model that a worker is still answering. */
export class OpenStreams {
  readonly #executions = new Map<number, Execution>();
  #emptyWaiters: (() => void)[] = [];

  add(batch: number, execution: Execution): void {
    this.#executions.set(batch, execution);
  }

  /** Batches with unanswered requests, oldest first. */
  get executions(): Iterable<Execution> {
    return this.#executions.values();
  }

  get(batch: number): Execution | undefined {
    return this.#executions.get(batch);
  }

  /** Delivers a response; `taken` is called once its consumer can take another. */
  respond(message: Extract<FromWorker, { type: "response" }>, taken: () => void): void {
    const { batch, index, final, outputs, error, again } = message;
    const execution = this.#executions.get(batch);
    if (execution === undefined) return;
    if (error !== undefined) execution.sendError(index, unpackError(error), final);
    else if (outputs !== undefined) execution.send(index, unpackOutputs(outputs), final);
    else if (again) execution.reschedule(index);
    else execution.finish(index);
    if (final) {
      this.forgetWhenOver(batch);
      return;
    }
    const wait = execution.writable(index);
    if (wait === undefined) taken();
    else void wait.then(taken);
  }

  /** Removes a batch if none of its requests is open any more. */
  forgetWhenOver(batch: number): void {
    const execution = this.#executions.get(batch);
    if (!execution?.requests.every((_, i) => !execution.isOpen(i))) return;
    this.#executions.delete(batch);
    if (this.#executions.size === 0) for (const resolve of this.#emptyWaiters.splice(0)) resolve();
  }

  /** Resolves when every batch is answered. */
  async whenEmpty(): Promise<void> {
    if (this.#executions.size > 0) await new Promise<void>((resolve) => this.#emptyWaiters.push(resolve));
  }

  /** Fails every open request. */
  fail(error: TritonError): void {
    for (const execution of this.#executions.values()) {
      for (let i = 0; i < execution.requests.length; i++) execution.sendError(i, error, true);
    }
    this.#executions.clear();
    for (const resolve of this.#emptyWaiters.splice(0)) resolve();
  }
}
