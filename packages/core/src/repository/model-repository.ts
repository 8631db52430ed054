import type { Clock, Timer } from "../clock/clock.js";
import { statusText } from "../errors/status-text.js";
import { TritonError } from "../errors/triton-error.js";
import { RepositoryAgents } from "./agents/repository-agents.js";
import { applyChanges } from "./apply-changes.js";
import { checkModelName } from "./check-model-name.js";
import { Dependencies } from "./dependencies.js";
import { indexRows, type ModelIndexEntry } from "./index-rows.js";
import { OverrideDirectory } from "./layout/override-directory.js";
import type { LoadParameters, UnloadParameters } from "./load-parameters.js";
import { loadsAll } from "./loads-all.js";
import { Locks } from "./locks.js";
import type { ModelKey } from "./model-id.js";
import { type LoaderContext, ModelLoader } from "./model-loader.js";
import { notPolled } from "./not-polled.js";
import type { RepositoryOptions } from "./repository-options.js";
import { type Poll, RepositoryPoller } from "./repository-poller.js";
import { RepositoryState } from "./repository-state.js";
import { CopySweeper } from "./sources/copy-sweeper.js";
import { openSources } from "./sources/open-sources.js";
import type { RepositorySource } from "./sources/repository-source.js";

/** What a repository needs of the server. */
export interface RepositoryContext extends Omit<LoaderContext, "loadThreadCount" | "retryCount"> {
  readonly clock: Clock;
  readonly options: RepositoryOptions;
}

/** What became of a change. */
interface Change {
  readonly poll: Poll;
  readonly failed: ReadonlyMap<ModelKey, string>;
}

/** The models of one or several repositories: which there are, which are in service, and how they come and go. */
export class ModelRepository {
  readonly #context: RepositoryContext;
  readonly #repositories: readonly RepositorySource[];
  readonly #state: RepositoryState;
  readonly #loader: ModelLoader;
  readonly #poller: RepositoryPoller;
  readonly #agents: RepositoryAgents;
  readonly #locks = new Locks();
  /** Files that came with load requests, and that models are made of. */
  readonly #overrides = new Set<OverrideDirectory>();
  readonly #sweeper: CopySweeper;
  #timer: Timer | undefined;
  #closed = false;

  constructor(context: RepositoryContext) {
    const { options, registry, log } = context;
    const paths = [options.modelRepository ?? []].flat();
    this.#context = context;
    this.#state = new RepositoryState(log);
    this.#repositories = openSources(paths, context).sort((a, b) => (a.path < b.path ? -1 : 1));
    this.#sweeper = new CopySweeper(this.#repositories, () => this.#state.copies());
    this.#loader = new ModelLoader({
      ...context,
      loadThreadCount: options.modelLoadThreadCount ?? 4,
      retryCount: options.modelLoadRetryCount ?? 0,
    });
    this.#agents = new RepositoryAgents(options.repositoryAgents ?? {}, log);
    this.#poller = new RepositoryPoller({
      agents: this.#agents,
      repositories: this.#repositories,
      namespacing: registry.namespacing,
      known: this.#state.models,
      modelConfigName: options.modelConfigName,
      autoComplete: !(options.disableAutoCompleteConfig ?? false),
      log,
      isBound: (name) => registry.isBound(name),
      onProblem: (id, problem) => this.#state.noteUnread(id, problem),
    });
  }

  /**
   * Loads what there is to load at the start, and begins to poll when that is asked for.
   *
   * @returns what failed, a line for each model
   * @throws TritonError INTERNAL for a repository that is not there.
   */
  async start(): Promise<string[]> {
    const { modelControlMode: mode = "none", loadModel = [] } = this.#context.options;
    if (this.#repositories.length === 0 || this.#closed) return [];
    await this.#poller.checkRepositories();
    const first = loadsAll(this.#context.options) ? undefined : loadModel;
    const { poll } = await this.#change(
      () => (first ? this.#poller.named(first) : this.#poller.all()),
      () => this.#poller.refresh(first),
    );
    if (mode === "poll") this.#pollLater();
    const failures = [...poll.problems].map(([name, { message }]) => `${name}: ${message}`);
    return [...failures, ...this.#state.failures()];
  }

  /**
   * Loads a model, or loads it again; returns once all its versions are in service. A version that is in service stays
   * when loading fails.
   *
   * @throws TritonError UNAVAILABLE unless models are controlled explicitly, INTERNAL (Triton's text; `cause` has the
   * reason) for a model that there is none of or whose configuration is refused, INVALID_ARG with the state of each
   * version that could not be loaded, and for names that are no names of directories.
   */
  async loadModel(name: string, { config, files }: LoadParameters = {}): Promise<void> {
    this.#assertExplicit();
    checkModelName(name);
    const directory = await OverrideDirectory.forLoad(config, files, this.#overrides).catch((error) => {
      const problem = TritonError.from(error);
      this.#context.log.error(`Poll failed for model directory '${name}': ${problem.message}`);
      throw notPolled(name, problem);
    });
    try {
      const { poll, failed } = await this.#change(
        () => this.#poller.named([name], { config, directory }),
        () => this.#poller.refresh([name], { config, directory }),
      );
      const errors = this.#state
        .named(name)
        .flatMap(([key]) => this.#state.invalid.get(key) ?? failed.get(key) ?? [])
        .map((message) => `load failed for model '${name}': ${message}\n`);
      if (errors.length > 0) throw new TritonError("INVALID_ARG", errors.join(""));
      if (poll.problems.size > 0) throw notPolled(name, [...poll.problems.values()][0]);
    } finally {
      await directory?.release();
    }
  }

  /**
   * Takes a model out of service; requests at hand are answered. A model that is not in service is left alone.
   *
   * @returns when no version takes requests any more; `ended` resolves when the requests at hand are answered too
   * @throws TritonError UNAVAILABLE unless models are controlled explicitly.
   */
  async unloadModel(
    name: string,
    { unloadDependents = false }: UnloadParameters = {},
  ): Promise<{ readonly ended: Promise<void> }> {
    this.#assertExplicit();
    let ended: Promise<void> = Promise.resolve();
    await this.#change(
      async () => {
        const named = this.#state.named(name).map(([key]) => key);
        const gone = unloadDependents ? this.#dependencies().withOrphans(named) : new Set(named);
        return { changed: new Map(), unchanged: new Map(), gone, problems: new Map() };
      },
      undefined,
      (unloading) => {
        ended = unloading;
      },
    );
    return { ended };
  }

  /** The repository index. */
  index(onlyReady: boolean): Promise<ModelIndexEntry[]> {
    return indexRows(onlyReady, {
      repositories: this.#repositories,
      namespacing: this.#context.registry.namespacing,
      registry: this.#context.registry,
      problemOf: (key) => this.#state.problemOf(key),
    });
  }

  /** True when a model was found that no version can be made of. */
  get lacksVersions(): boolean {
    const { models, failed } = this.#state;
    const names = [...failed.keys()].map((key) => models.get(key)?.id.name ?? "");
    return names.some((name) => this.#context.registry.versions(name).length === 0);
  }

  /** True for the name of a model of the repository. */
  has(name: string): boolean {
    return this.#state.named(name).length > 0;
  }

  /** A model has been bound: ensembles may have waited for it. */
  boundModelCame(): void {
    const { models, invalid } = this.#state;
    if (invalid.size === 0) return;
    void this.#change(async () => {
      const waiting = [...models].filter(([key]) => invalid.has(key));
      return { changed: new Map(waiting), unchanged: new Map(), gone: new Set(), problems: new Map() };
    }).catch((error) => this.#context.log.error(statusText(error)));
  }

  /** Ends polling; what is loading still ends. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    for (const repository of this.#repositories) repository.abort();
    await this.#locks.idle();
  }

  /** All models are gone: tells the agents, and removes copies and what came with load requests. */
  async ended(): Promise<void> {
    await this.#agents.end();
    await Promise.all([...this.#overrides].map((directory) => directory.remove()));
    await Promise.all(this.#repositories.map((repository) => repository.close()));
  }

  #pollLater(): void {
    if (this.#closed) return;
    const { clock, options, log } = this.#context;
    this.#timer = clock.setTimer((options.repositoryPollSecs ?? 15) * 1000, () => {
      void this.#change(
        () => this.#poller.all(),
        () => this.#poller.refresh(),
      )
        .catch((error) => {
          if (!this.#closed) log.error(statusText(error));
        })
        .finally(() => this.#pollLater());
    });
  }

  /**
   * Looks at directories and applies what has changed; one at a time for each model.
   *
   * @param prepare brings models to this machine, while other models change
   */
  async #change(
    look: () => Promise<Poll>,
    prepare?: () => Promise<void>,
    onUnload?: (ended: Promise<void>) => void,
  ): Promise<Change> {
    return this.#sweeper.during(async () => {
      if (prepare !== undefined) {
        await prepare();
        if (this.#closed) throw new TritonError("UNAVAILABLE", "the server is closing");
      }
      return await this.#apply(look, onUnload);
    });
  }

  async #apply(look: () => Promise<Poll>, onUnload?: (ended: Promise<void>) => void): Promise<Change> {
    const { models } = this.#state;
    const plan = await this.#locks.plan(async () => {
      const poll = await look();
      const before = this.#dependencies().withDependents(poll.gone);
      const after = new Map([...models, ...poll.unchanged, ...poll.changed]);
      for (const key of poll.gone) after.delete(key);
      const dependencies = this.#dependencies(after);
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
        const gone = this.#state.forget(key);
        return gone === undefined ? undefined : this.#loader.unload(gone.id);
      });
      onUnload?.(Promise.all(ended).then(() => {}));
      const failures = await applyChanges(affected, dependencies, previous, {
        ...this.#context,
        state: this.#state,
        loader: this.#loader,
      });
      return { poll, failed: failures };
    } finally {
      plan.release();
    }
  }

  #dependencies(models = this.#state.models): Dependencies {
    return new Dependencies(models, (name) => this.#context.registry.isBound(name));
  }

  /** A model that is not in service and whose directory is gone is no model any more. */
  #forgetMissing(missing: ReadonlyMap<string, TritonError>): void {
    for (const [name, { code }] of missing) {
      const isServing = this.#context.registry.versions(name).some(({ state }) => state !== "UNAVAILABLE");
      if (code !== "NOT_FOUND" || isServing) continue;
      for (const [key, { id }] of this.#state.named(name)) {
        this.#state.forget(key);
        this.#loader.forgetFailures(id);
      }
    }
  }

  #assertExplicit(): void {
    if (this.#context.options.modelControlMode === "explicit" && !this.#closed) return;
    throw new TritonError("UNAVAILABLE", "explicit model load / unload is not allowed if polling is enabled");
  }
}
