import { statusText, TritonError } from "@tritonjs/protocol";
import { checkMembers } from "../config/ensemble.js";
import type { ModelRegistry } from "../model/registry.js";
import type { Log } from "../observe/log.js";
import { Dependencies, keyOf, type ModelId, type ModelKey, nameOf } from "./dependencies.js";
import { Locks } from "./locks.js";
import type { ModelCopy } from "./model-copy.js";
import type { LoadedModel, LoaderContext, ModelLoader } from "./model-loader.js";
import type { Poll, PolledModel } from "./repository-poller.js";
import type { RepositorySource } from "./repository-source.js";

/** The result of a change. */
interface Change extends AppliedChanges {
  readonly poll: Poll;
}

/** The state and the parts that {@link RepositoryChanges} works on. */
interface ChangesContext extends Omit<LoaderContext, "loadThreadCount" | "retryCount"> {
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

/** The state and the parts that {@link applyChanges} works on. */
interface ApplyContext {
  readonly state: RepositoryState;
  readonly loader: ModelLoader;
  readonly registry: ModelRegistry;
  readonly log: Log;
}

/** The result of {@link applyChanges}. */
interface AppliedChanges {
  /** Models that could not be loaded, with their reasons. */
  readonly failed: ReadonlyMap<ModelKey, string>;
  /** Resolves when instances removed by updates in place are released. */
  readonly removed: Promise<void>;
}

/**
 * Loads models in the order of their dependencies, and independent models at the same time. A model that cannot be in
 * service is unloaded.
 *
 * @param keys models to load
 * @param previous models as they were before the change
 * @returns why models could not be loaded, and when removed instances are released
 */
async function applyChanges(
  keys: ReadonlySet<ModelKey>,
  dependencies: Dependencies,
  previous: ReadonlyMap<ModelKey, PolledModel>,
  context: ApplyContext,
): Promise<AppliedChanges> {
  const { state, loader, log } = context;
  const removed: Promise<void>[] = [];
  const failures = new Map<ModelKey, string>();
  const work = new Map<ModelKey, Promise<void>>();

  const settle = (key: ModelKey): Promise<void> => {
    const begun = work.get(key) ?? settleNow(key);
    work.set(key, begun);
    return begun;
  };

  const settleNow = async (key: ModelKey): Promise<void> => {
    const model = state.models.get(key)!;
    let problem = dependencies.problemOf(key);
    if (problem === undefined) {
      const members = [...dependencies.membersOf(key)].filter((member) => keys.has(member));
      await Promise.all(members.map(settle));
      await waitForBound(model, context.registry);
      problem = memberProblem(key, dependencies, context);
    }
    if (problem !== undefined) {
      state.invalid.set(key, problem);
      log.error(`Invalid argument: ${problem}`);
      await model.agents?.failed();
      void loader.unload(model.id);
      return;
    }
    state.invalid.delete(key);
    const outcome = await load(key, withNamespaces(key, model, dependencies), previous.get(key), context);
    if (typeof outcome === "string") failures.set(key, outcome);
    else removed.push(outcome.removed);
  };

  await Promise.all([...keys].map(settle));
  return { failed: failures, removed: Promise.all(removed).then(() => {}) };
}

async function load(
  key: ModelKey,
  model: PolledModel,
  previous: PolledModel | undefined,
  { state, loader, log }: ApplyContext,
): Promise<LoadedModel | string> {
  try {
    const loaded = await loader.load(model, previous);
    await model.agents?.completed();
    state.failed.delete(key);
    return loaded;
  } catch (error) {
    await model.agents?.failed();
    const { message } = TritonError.from(error);
    if (!message.startsWith("version "))
      log.error(`failed to load model '${model.id.name}': ${message}`, { model: model.id.name });
    state.failed.set(key, message);
    const stays = loader.readyVersions(model.id).length > 0;
    // The versions in service come from the previous files. The next load tries again.
    const known = stays && previous !== undefined ? previous : { ...model, times: undefined };
    state.models.set(key, { ...known, explicit: model.explicit });
    return message;
  }
}

/** Waits for members that the program binds, which load by themselves. */
async function waitForBound({ config }: PolledModel, registry: ModelRegistry): Promise<void> {
  for (const { modelName } of config.ensembleScheduling?.step ?? []) {
    if (registry.isBound(modelName)) await registry.loading(modelName);
  }
}

/** Names the members that keep an ensemble from being loaded. */
function memberProblem(
  key: ModelKey,
  dependencies: Dependencies,
  { state, loader, registry }: ApplyContext,
): string | undefined {
  const { id, config } = state.models.get(key)!;
  const steps = config.ensembleScheduling?.step;
  if (steps === undefined) return undefined;
  for (const { modelName, modelVersion } of steps) {
    const member = dependencies.memberFor(id, modelName);
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
  const named = withNamespaces(key, state.models.get(key)!, dependencies).config;
  return checkMembers(named, (step) => registry.memberOf(step)?.config).problems[0];
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

/** The known state of the models of the repository. */
export class RepositoryState {
  readonly models = new Map<ModelKey, PolledModel>();
  /** Why models cannot be in service apart from their files: for ensembles that lack a member. */
  readonly invalid = new Map<ModelKey, string>();
  /** Why the last load of each model failed. */
  readonly failed = new Map<ModelKey, string>();
  /** Why directories could not be read. */
  readonly #unread = new Map<ModelKey, string>();

  constructor(private readonly log: Log) {}

  /** Models of a name, in all namespaces. */
  named(name: string): [ModelKey, PolledModel][] {
    return [...this.models].filter(([, { id }]) => id.name === name);
  }

  /** The reason why a model is not served. */
  problemOf(key: ModelKey): string | undefined {
    return this.#unread.get(key) ?? this.invalid.get(key) ?? this.failed.get(key);
  }

  /** The reason why a model of the name is not served, in any namespace. */
  problemOfName(name: string): string | undefined {
    const reasons = [...this.#unread, ...this.invalid, ...this.failed];
    return reasons.find(([key]) => nameOf(key) === name)?.[1];
  }

  /** The copies that models use. */
  copies(): ReadonlySet<ModelCopy> {
    return new Set([...this.models.values()].flatMap(({ copy }) => copy ?? []));
  }

  /** Why models are not in service, one line for each model. */
  failures(): string[] {
    return [...this.models].flatMap(([key, { id }]) => {
      const failure = this.invalid.get(key) ?? this.failed.get(key);
      return failure === undefined ? [] : [`${id.name}: ${failure}`];
    });
  }

  /** Records why a directory could not be read, or that it can be read again. A repeated reason is not logged again. */
  noteUnread(id: ModelId, problem: TritonError | undefined): void {
    const key = keyOf(id);
    if (problem === undefined) this.#unread.delete(key);
    else if (this.#unread.get(key) !== statusText(problem)) {
      this.#unread.set(key, statusText(problem));
      this.log.error(`Poll failed for model directory '${id.name}': ${problem.message}`);
    }
  }

  /** @returns the forgotten model */
  forget(key: ModelKey): PolledModel | undefined {
    const model = this.models.get(key);
    for (const map of [this.models, this.invalid, this.failed, this.#unread]) map.delete(key);
    return model;
  }
}

/** Removes obsolete copies of models while no change that might use them is in flight. */
export class CopySweeper {
  #changes = 0;

  /** @param known copies of models that the last poll found */
  constructor(
    private readonly sources: readonly RepositorySource[],
    private readonly known: () => ReadonlySet<ModelCopy>,
  ) {}

  /** Runs a change. */
  async during<T>(change: () => Promise<T>): Promise<T> {
    this.#changes++;
    try {
      return await change();
    } finally {
      this.#changes--;
      if (this.#changes === 0) for (const source of this.sources) source.sweep(this.known());
    }
  }
}
