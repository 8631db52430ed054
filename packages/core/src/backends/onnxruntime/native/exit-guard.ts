import { TritonError } from "@tritonjs/protocol";

/** An instance that may have a batch on another thread. */
export interface RunningInstance {
  /** Ends its running batch. */
  end(reason: TritonError): void;
}

/**
 * Instances whose batches end when the process exits. Node waits for the threads of libuv's pool before it exits, so
 * without this a long batch would delay the exit.
 */
class ExitGuard {
  readonly #instances = new Set<RunningInstance>();

  add(instance: RunningInstance): void {
    if (this.#instances.size === 0) process.once("exit", this.#endAll);
    this.#instances.add(instance);
  }

  delete(instance: RunningInstance): void {
    this.#instances.delete(instance);
    if (this.#instances.size === 0) process.off("exit", this.#endAll);
  }

  readonly #endAll = (): void => {
    const reason = new TritonError("UNAVAILABLE", "the process exits", { reason: "MODEL_STOPPED" });
    for (const instance of this.#instances) instance.end(reason);
  };
}

/** The guard of this thread. */
export const endRunsAtExit = new ExitGuard();
