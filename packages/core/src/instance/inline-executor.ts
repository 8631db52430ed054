import type { Execution, ExecutionResult, Executor } from "./executor.js";
import { type Callable, runCallable } from "./run-callable.js";
import { runDecoupled } from "./run-decoupled.js";

/** Runs a callback on this thread: for closures, which cannot go anywhere else. */
export class InlineExecutor implements Executor {
  readonly mustFinish = false;
  readonly details = {};
  readonly #callable: Callable;

  constructor(callable: Callable) {
    this.#callable = callable;
  }

  async start(): Promise<void> {}

  async execute(execution: Execution): Promise<readonly ExecutionResult[] | undefined> {
    if (!execution.decoupled) return runCallable(this.#callable, execution);
    await runDecoupled(this.#callable, execution);
    return undefined;
  }

  async stop(): Promise<void> {}
}
