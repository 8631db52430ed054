import { TritonError } from "@tritonjs/protocol";
import { type AppliedChanges, applyChanges } from "./apply-changes.js";
import { Dependencies } from "./dependencies.js";
import { Locks } from "./locks.js";
import type { LoaderContext, ModelLoader } from "./model-loader.js";
import type { Poll } from "./repository-poller.js";
import type { RepositoryState } from "./repository-state.js";
import { CopySweeper } from "./sources/copy-sweeper.js";
import type { RepositorySource } from "./sources/repository-source.js";

/** The result of a change. */
export interface Change extends AppliedChanges {
  readonly poll: Poll;
}

/** The state and the parts that {@link RepositoryChanges} works on. */
export interface ChangesContext extends Omit<LoaderContext, "loadThreadCount" | "retryCount"> {
  readonly state: RepositoryState;
  readonly loader: ModelLoader;
  readonly repositories: readonly RepositorySource[];
}

/** Brings the models in service up to date with the repositories, one change at a time for each model. */
export class RepositoryChanges {
  readonly #context: ChangesContext;
  readonly #locks = new Locks();
  readonly #sweeper: CopySweeper;
  #ended = false;

  constructor(context: ChangesContext) {
    this.#context = context;
    this.#sweeper = new CopySweeper(context.repositories, () => context.state.copies());
  }

  /**
   * Polls the repositories, and applies the changes.
   *
   * @param prepare copies models to this machine, while other models change
   * @param onUnload gets a promise that resolves when the requests of unloaded models are answered
   * @throws TritonError UNAVAILABLE when the server has begun to close.
   */
  apply(
    look: () => Promise<Poll>,
    prepare?: () => Promise<void>,
    onUnload?: (ended: Promise<void>) => void,
  ): Promise<Change> {
    return this.#sweeper.during(async () => {
      if (prepare !== undefined) {
        await prepare();
        if (this.#ended)
          throw new TritonError("UNAVAILABLE", "the server is closing", { reason: "SERVER_STOPPING" });
      }
      return await this.#planAndApply(look, onUnload);
    });
  }

  /** The dependencies between models. */
  dependencies(models = this.#context.state.models): Dependencies {
    return new Dependencies(models, (name) => this.#context.registry.isBound(name));
  }

  /** Waits for changes in flight. Changes that still prepare are cancelled. */
  async end(): Promise<void> {
    this.#ended = true;
    await this.#locks.idle();
  }

  async #planAndApply(look: () => Promise<Poll>, onUnload?: (ended: Promise<void>) => void): Promise<Change> {
    const { state, loader } = this.#context;
    const { models } = state;
    const plan = await this.#locks.plan(async () => {
      const poll = await look();
      const before = this.dependencies().withDependents(poll.gone);
      const after = new Map([...models, ...poll.unchanged, ...poll.changed]);
      for (const key of poll.gone) after.delete(key);
      const dependencies = this.dependencies(after);
      const affected = new Set([...dependencies.withDependents(poll.changed.keys()), ...before]);
      for (const key of affected) if (!after.has(key)) affected.delete(key);
      const locked = [...affected, ...poll.gone, ...poll.unchanged.keys()];
      return { value: { poll, affected, dependencies }, locked };
    });
    const { poll, affected, dependencies } = plan.value;
    try {
      this.#forgetMissing(poll.problems);
      const previous = new Map(models);
      for (const [key, model] of [...poll.unchanged, ...poll.changed]) models.set(key, model);
      const ended = [...poll.gone].map((key) => {
        const gone = state.forget(key);
        return gone === undefined ? undefined : loader.unload(gone.id);
      });
      onUnload?.(Promise.all(ended).then(() => {}));
      return { poll, ...(await applyChanges(affected, dependencies, previous, this.#context)) };
    } finally {
      plan.release();
    }
  }

  /** Forgets models that are not in service and whose directories are gone. */
  #forgetMissing(missing: ReadonlyMap<string, TritonError>): void {
    for (const [name, { code }] of missing) {
      const isServing = this.#context.registry.versions(name).some(({ state }) => state !== "UNAVAILABLE");
      if (code !== "NOT_FOUND" || isServing) continue;
      for (const [key, { id }] of this.#context.state.named(name)) {
        this.#context.state.forget(key);
        this.#context.loader.forgetFailures(id);
        this.#context.registry.forget(id.name, id.namespace);
      }
    }
  }
}
