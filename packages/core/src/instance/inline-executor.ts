import type { Execution, ExecutionResult, Executor } from "./executor.js";
import { type Callable, runCallable } from "./run-callable.js";

/** Runs a callback on this thread: for closures, which cannot go anywhere else. */
export class InlineExecutor implements Executor {
  readonly mustFinish = false;
  readonly details = {};
  readonly #callable: Callable;

  constructor(callable: Callable) {
    this.#callable = callable;
  }

  async start(): Promise<void> {}

  execute(execution: Execution): Promise<readonly ExecutionResult[]> {
    return runCallable(this.#callable, execution);
  }

  async stop(): Promise<void> {}
}
