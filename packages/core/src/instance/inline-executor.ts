import { AsyncResource } from "node:async_hooks";
import type { Execution, ExecutionResult, Executor } from "./executor.js";
import type { ImportedModel } from "./import-callable.js";
import { releaseHeld } from "./instance-holdings.js";
import { type LoopShare, loopShareOf } from "./loop-share.js";
import { type Callable, runCallable } from "./run-callable.js";
import { runDecoupled } from "./run-decoupled.js";

/** Runs a callback on this thread: for closures, which cannot run anywhere else, and for modules that may run here. */
export class InlineExecutor implements Executor {
  readonly isolation = "inline";
  readonly mustFinish = false;
  readonly details = {};
  onRoom: Executor["onRoom"];
  readonly #load: (running: Iterable<Execution>) => Promise<ImportedModel>;
  /** Batches that the module works on; undefined for a callback, which has no logger. */
  readonly #running: Set<Execution> | undefined;
  readonly #asyncContext = new AsyncResource("TritonInstance");
  readonly #roomAgain = (): void => this.onRoom?.();
  /** Undefined until it has run a batch. */
  #share: LoopShare | undefined;
  #model: ImportedModel | undefined;

  /** @param callable the callback, or a function that imports its module, given the batches that run at any time */
  constructor(callable: Callable | ((running: Iterable<Execution>) => Promise<ImportedModel>)) {
    const isModule = typeof callable === "function";
    this.#load = isModule ? callable : async () => ({ callable, finalize: undefined });
    this.#running = isModule ? new Set() : undefined;
  }

  get isPausing(): boolean {
    const share = this.#share;
    if (share === undefined || !share.isSpent) return false;
    share.whenRenewed(this.#roomAgain);
    return true;
  }

  async start(): Promise<void> {
    this.#model = await this.#load(this.#running ?? []);
  }

  execute(execution: Execution): Promise<readonly ExecutionResult[] | undefined> {
    const { clock, within } = execution;
    this.#share ??= loopShareOf(clock);
    const turn = this.#share.begin();
    // Not in the context of the request that started the batch.
    return this.#asyncContext.runInAsyncScope(() =>
      within === undefined ? this.#run(execution, turn) : within(() => this.#run(execution, turn)),
    );
  }

  async stop(): Promise<void> {
    const { callable, finalize } = this.#model ?? {};
    this.#model = undefined;
    await finalize?.();
    if (callable !== undefined) await releaseHeld(callable.info);
  }

  async #run(execution: Execution, turn: number): Promise<readonly ExecutionResult[] | undefined> {
    const { callable } = this.#model!;
    this.#running?.add(execution);
    try {
      if (!execution.decoupled) return await runCallable(callable, execution);
      await runDecoupled(callable, execution);
      return undefined;
    } finally {
      this.#share!.end(turn);
      this.#running?.delete(execution);
    }
  }
}
