import { TritonError } from "@tritonjs/protocol";
import { membersProblems } from "../config/resolve-config.js";
import type { Dependencies, ModelKey } from "./dependencies.js";
import type { ModelLoader } from "./model-loader.js";
import type { PolledModel } from "./poll-model.js";
import type { Poll, RepositoryState } from "./repository-poller.js";

/** Brings the models in service up to date with the repositories, one change at a time for each model. */
export class RepositoryChanges {
  readonly #locks = new Locks();
  #inFlight = 0;
  #ended = false;

  constructor(
    private readonly state: RepositoryState,
    private readonly loader: ModelLoader,
  ) {}

  /**
   * Polls the repositories, and applies the changes.
   *
   * @param prepare copies models to this machine, while other models change
   * @param onUnload gets a promise that resolves when the requests of unloaded models are answered
   * @throws TritonError UNAVAILABLE when the server has begun to close.
   */
  apply(
    poll: () => Promise<Poll>,
    prepare?: () => Promise<void>,
    onUnload?: (ended: Promise<void>) => void,
  ): Promise<AppliedChange> {
    return this.keepingCopies(async () => {
      if (prepare !== undefined) {
        await prepare();
        if (this.#ended)
          throw new TritonError("UNAVAILABLE", "the server is closing", { reason: "SERVER_STOPPING" });
      }
      return await this.#planAndApply(poll, onUnload);
    });
  }

  /** Waits for changes in flight. Changes that still prepare are cancelled. */
  async end(): Promise<void> {
    this.#ended = true;
    await this.#locks.idle();
  }

  /** Runs a change. Obsolete copies of models are removed when no change that might use them is in flight. */
  async keepingCopies<T>(change: () => Promise<T>): Promise<T> {
    this.#inFlight++;
    try {
      return await change();
    } finally {
      this.#inFlight--;
      if (this.#inFlight === 0) for (const source of this.state.sources) source.sweep(this.state.copies());
    }
  }

  async #planAndApply(
    poll: () => Promise<Poll>,
    onUnload?: (ended: Promise<void>) => void,
  ): Promise<AppliedChange> {
    const { state, loader } = this;
    const { models } = state;
    const { value, release } = await this.#locks.plan(async () => {
      const polled = await poll();
      const before = state.dependencies().withDependents(polled.gone);
      const after = new Map([...models, ...polled.unchanged, ...polled.changed]);
      for (const key of polled.gone) after.delete(key);
      const dependencies = state.dependencies(after);
      const affected = new Set([...dependencies.withDependents(polled.changed.keys()), ...before]);
      for (const key of affected) if (!after.has(key)) affected.delete(key);
      const locked = [...affected, ...polled.gone, ...polled.unchanged.keys()];
      return { value: { polled, affected, dependencies }, locked };
    });
    const { polled, affected, dependencies } = value;
    try {
      this.#forgetMissing(polled.problems);
      const change = new AppliedChange(polled, affected, dependencies, state, loader);
      for (const [key, model] of [...polled.unchanged, ...polled.changed]) models.set(key, model);
      const ended = [...polled.gone].map((key) => {
        const gone = state.forget(key);
        return gone === undefined ? undefined : loader.unload(gone.id);
      });
      onUnload?.(Promise.all(ended).then(() => {}));
      await change.run();
      return change;
    } finally {
      release();
    }
  }

  /** Forgets models that are not in service and whose directories are gone. */
  #forgetMissing(missing: ReadonlyMap<string, TritonError>): void {
    const { registry } = this.state.server;
    for (const [name, { code }] of missing) {
      const isServing = registry.versions(name).some(({ state }) => state !== "UNAVAILABLE");
      if (code !== "NOT_FOUND" || isServing) continue;
      for (const [key, { id }] of this.state.named(name)) {
        this.state.forget(key);
        this.loader.forgetFailures(id);
        registry.forget(id.name, id.namespace);
      }
    }
  }
}

/**
 * One change of the models in service. Models load in the order of their dependencies, and independent models at the
 * same time. A model that cannot be in service is unloaded.
 */
class AppliedChange {
  /** Models that could not be loaded, with their reasons. */
  readonly failed = new Map<ModelKey, string>();
  readonly #removed: Promise<void>[] = [];
  readonly #work = new Map<ModelKey, Promise<void>>();
  readonly #previous: ReadonlyMap<ModelKey, PolledModel>;

  constructor(
    readonly poll: Poll,
    private readonly keys: ReadonlySet<ModelKey>,
    private readonly dependencies: Dependencies,
    private readonly state: RepositoryState,
    private readonly loader: ModelLoader,
  ) {
    this.#previous = new Map(state.models);
  }

  /** Resolves when instances removed by updates in place are released. */
  get removed(): Promise<void> {
    return Promise.all(this.#removed).then(() => {});
  }

  async run(): Promise<void> {
    await Promise.all([...this.keys].map((key) => this.#settle(key)));
  }

  #settle(key: ModelKey): Promise<void> {
    const begun = this.#work.get(key) ?? this.#settleNow(key);
    this.#work.set(key, begun);
    return begun;
  }

  async #settleNow(key: ModelKey): Promise<void> {
    const { state, dependencies, loader } = this;
    const model = state.models.get(key)!;
    const named = withNamespaces(key, model, dependencies);
    let problem = dependencies.problemOf(key);
    if (problem === undefined) {
      const members = [...dependencies.membersOf(key)].filter((member) => this.keys.has(member));
      await Promise.all(members.map((member) => this.#settle(member)));
      await this.#boundMembers(model);
      problem = this.#memberProblem(named);
    }
    if (problem === undefined) {
      state.invalid.delete(key);
      await this.#load(key, model, named);
      return;
    }
    state.invalid.set(key, problem);
    state.server.log.error(`Invalid argument: ${problem}`);
    await model.agents?.failed();
    void loader.unload(model.id);
  }

  async #load(key: ModelKey, model: PolledModel, named: PolledModel): Promise<void> {
    const { state, loader } = this;
    const previous = this.#previous.get(key);
    try {
      const { removed } = await loader.load(named, previous);
      await model.agents?.completed();
      state.failed.delete(key);
      this.#removed.push(removed);
    } catch (error) {
      await model.agents?.failed();
      const { message } = TritonError.from(error);
      if (!message.startsWith("version ")) {
        state.server.log.error(`failed to load model '${model.id.name}': ${message}`, {
          model: model.id.name,
        });
      }
      state.failed.set(key, message);
      this.failed.set(key, message);
      const stays = loader.readyVersions(model.id).length > 0;
      // The versions in service come from the previous files. The next load tries again.
      const known = stays && previous !== undefined ? previous : { ...model, times: undefined };
      state.models.set(key, { ...known, explicit: model.explicit });
    }
  }

  /** Waits for members that the program binds, which load by themselves. */
  async #boundMembers({ config }: PolledModel): Promise<void> {
    const { registry } = this.state.server;
    for (const { modelName } of config.ensembleScheduling?.step ?? []) {
      if (registry.isBound(modelName)) await registry.loading(modelName);
    }
  }

  /** Names the members that keep an ensemble from being loaded. */
  #memberProblem({ id, config }: PolledModel): string | undefined {
    const { state, loader } = this;
    const { registry } = state.server;
    const steps = config.ensembleScheduling?.step;
    if (steps === undefined) return undefined;
    for (const { modelName, modelVersion } of steps) {
      const member = this.dependencies.memberFor(id, modelName);
      const depends = `ensemble '${id.name}' depends on '${modelName}'`;
      const invalid = member && state.invalid.get(member);
      if (invalid !== undefined) {
        return `${depends} which is not valid. Model '${modelName}' failed with error: ${invalid}`;
      }
      const ready =
        member === undefined
          ? registry.ready(modelName).map(({ version }) => version)
          : loader.readyVersions(state.models.get(member)!.id);
      if (ready.length === 0) {
        const failure = member && state.failed.get(member);
        return failure === undefined
          ? `${depends} which has no loaded version.`
          : `${depends} which has no loaded version. Model '${modelName}' loading failed with error: ${failure}`;
      }
      if (modelVersion !== -1 && !ready.includes(modelVersion)) {
        return `${depends} whose required version ${modelVersion} is not loaded.`;
      }
    }
    return membersProblems(config, (step) => registry.memberOf(step)?.config)[0];
  }
}

/** Adds namespaces to the steps of an ensemble, to tell models of the same name apart. */
function withNamespaces(key: ModelKey, model: PolledModel, dependencies: Dependencies): PolledModel {
  const { ensembleScheduling } = model.config;
  if (ensembleScheduling === undefined) return model;
  const members = [...dependencies.membersOf(key)];
  const step = ensembleScheduling.step.map((one) => {
    const member = dependencies.memberFor(model.id, one.modelName);
    const namespace = members.includes(member ?? "") ? member!.slice(0, member!.indexOf("\0")) : "";
    return { ...one, modelNamespace: namespace };
  });
  return { ...model, config: { ...model.config, ensembleScheduling: { ...ensembleScheduling, step } } };
}

/** A plan whose models are locked until it is released. */
interface LockedPlan<T> {
  readonly value: T;
  release(): void;
}

/**
 * Serializes changes of the same model. Plans are made one after the other. A plan that needs a model in change waits,
 * and is then made again. Changes of other models run at the same time.
 */
export class Locks {
  readonly #locked = new Map<ModelKey, Promise<void>>();
  #planning: Promise<unknown> = Promise.resolve();

  /** Makes a plan and locks its models. */
  async plan<T>(
    make: () => Promise<{ readonly value: T; readonly locked: readonly ModelKey[] }>,
  ): Promise<LockedPlan<T>> {
    for (;;) {
      const attempt = this.#planning.then(() => this.#attempt(make));
      this.#planning = attempt.catch(() => {});
      const made = await attempt;
      if (!("conflict" in made)) return made;
      await made.conflict;
    }
  }

  /** Resolves when no change is in flight. */
  async idle(): Promise<void> {
    await this.#planning;
    while (this.#locked.size > 0) await [...this.#locked.values()][0];
  }

  async #attempt<T>(
    make: () => Promise<{ readonly value: T; readonly locked: readonly ModelKey[] }>,
  ): Promise<LockedPlan<T> | { readonly conflict: Promise<void> }> {
    const { value, locked } = await make();
    for (const key of locked) {
      const other = this.#locked.get(key);
      if (other !== undefined) return { conflict: other };
    }
    let unlock: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      unlock = resolve;
    });
    for (const key of locked) this.#locked.set(key, held);
    const release = () => {
      for (const key of locked) if (this.#locked.get(key) === held) this.#locked.delete(key);
      unlock();
    };
    return { value, release };
  }
}
