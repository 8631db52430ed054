import { isDeepStrictEqual } from "node:util";
import {
  completeInstanceGroups,
  instanceGroupProblems,
  type ModelPlan,
  type ModelRegistry,
  type ModelVersion,
  membersProblems,
  migrationObstacle,
} from "@tritonjs/core/extension";
import {
  ConcurrencyGate,
  errorFor,
  type ModelConfig,
  statusText,
  TritonError,
  throwProblems,
} from "@tritonjs/protocol";
import { writePrototxt } from "../config/prototxt.js";
import { isVersionModified } from "../directories/model-directory.js";
import type { RepositoryOptions } from "../repository-options.js";
import { type Dependencies, type ModelId, type ModelKey, nameOf } from "./dependencies.js";
import { planVersion } from "./plan-version.js";
import { type PolledModel, selectVersions } from "./poll-model.js";
import type { AgentChain } from "./repository-agents.js";
import type { Poll, RepositoryServer, RepositoryState } from "./repository-poller.js";

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
        if (this.#ended) throw errorFor("SERVER_STOPPING", "the server is closing");
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
      this.state.forgetUnread((key) => nameOf(key) === name);
      for (const [key, { id }] of this.state.named(name)) {
        this.state.forget(key);
        this.loader.forgetFailures(id);
        registry.forget(id.name, id.namespace);
      }
    }
  }
}

/** One change of the models in service. Models load after those that they depend on, others at the same time. */
class AppliedChange {
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
    state.countLoadFailure(model.id);
    state.log.error(`Invalid argument: ${problem}`);
    await model.agents?.failed();
    void loader.unload(model.id);
  }

  async #load(key: ModelKey, model: PolledModel, named: PolledModel): Promise<void> {
    const { state, loader } = this;
    const previous = this.#previous.get(key);
    try {
      const { removed } = await loader.load(named, previous, this.poll.byName?.has(model.id.name) === true);
      await model.agents?.completed();
      state.failed.delete(key);
      state.failedFiles.delete(key);
      this.#removed.push(removed);
    } catch (error) {
      await model.agents?.failed();
      const { message } = TritonError.from(error);
      if (!message.startsWith("version ")) {
        state.log.error(`failed to load model '${model.id.name}': ${message}`, {
          model: model.id.name,
        });
      }
      state.failed.set(key, message);
      if (model.times !== undefined) state.failedFiles.set(key, model.times);
      state.countLoadFailure(model.id);
      this.failed.set(key, message);
      const stays = loader.readyVersions(model.id).length > 0;
      // The versions in service come from the previous files. The next load by name tries again.
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

interface VersionOutcome {
  readonly version: number;
  /** Set when the version is new. */
  readonly fresh?: ModelVersion;
  /** The failure, in the words for the caller. */
  readonly failure?: string;
  readonly removed?: Promise<void>;
}

export interface LoadedModel {
  /** Resolves when instances removed by an update in place are released. */
  readonly removed: Promise<void>;
}

/** Brings versions of models into service and takes them out of service. Calls for one model must not overlap. */
export class ModelLoader {
  readonly #permits: ConcurrencyGate;
  readonly #held = new WeakMap<ModelVersion, HeldFiles>();

  constructor(
    private readonly options: RepositoryOptions,
    private readonly server: RepositoryServer,
  ) {
    this.#permits = new ConcurrencyGate(
      Math.max(1, options.modelLoadThreadCount ?? 4),
      Number.POSITIVE_INFINITY,
    );
  }

  /**
   * Loads the versions that a model's policy selects. Versions in service stay until all new ones are ready, and stay
   * if one of those fails. A version is kept when its directory and the configuration have not changed. Changed
   * instance groups are applied while it serves.
   *
   * @param loadsNow whether the versions are in memory before they serve, whatever the options say
   * @throws TritonError INVALID_ARG with the state of each version that could not be loaded, and why.
   */
  async load(
    polled: PolledModel,
    previous: PolledModel | undefined,
    loadsNow: boolean,
  ): Promise<LoadedModel> {
    this.server.registry.announce(polled.id.name, polled.id.namespace);
    const versions = await this.#findVersions(polled);
    const outcomes = await Promise.all(
      versions.map((version) => this.#loadVersion(polled, previous, version, loadsNow)),
    );
    const failures = outcomes.flatMap(({ failure }) => failure ?? []);
    const fresh = outcomes.flatMap((outcome) => outcome.fresh ?? []);
    const { log } = this.server;
    if (failures.length > 0) {
      for (const model of fresh) this.#retire(model);
      log.info(`failed to load '${polled.id.name}'`, { model: polled.id.name });
      throw errorFor("LOAD_REQUEST_FAILED", failures.join(""));
    }
    // New versions come first, so that a request for any version always finds one.
    for (const model of fresh) this.#publish(model);
    for (const model of this.#serving(polled.id)) {
      if (!versions.includes(model.version)) this.#retire(model);
    }
    this.forgetFailures(polled.id);
    log.info(`successfully loaded '${polled.id.name}'`, { model: polled.id.name });
    const removed = Promise.all(outcomes.map((outcome) => outcome.removed)).then(() => {});
    return { removed };
  }

  /** Takes all versions of a model out of service. @returns when the requests in flight are answered */
  unload(id: ModelId): Promise<void> {
    const ended = this.#loaded(id)
      .filter(({ state, isEnsemble, reason }) => state === "READY" || (isEnsemble && reason !== "unloaded"))
      .map((model) => this.#retire(model));
    return Promise.all(ended).then(() => {});
  }

  readyVersions({ name, namespace }: ModelId): number[] {
    const versions = this.server.registry.versions(name, namespace);
    return versions.filter(({ state }) => state === "READY").map(({ version }) => version);
  }

  /** Forgets failed versions that are not requested any more. Otherwise they would keep the server from being ready. */
  forgetFailures({ name, namespace }: ModelId): void {
    const { registry } = this.server;
    for (const one of registry.versions(name, namespace)) {
      const failed = one.state === "UNAVAILABLE" && one.reason !== "unloaded";
      if (failed && !one.isEnsemble) registry.remove(one);
    }
  }

  async #loadVersion(
    polled: PolledModel,
    previous: PolledModel | undefined,
    version: number,
    loadsNow: boolean,
  ): Promise<VersionOutcome> {
    const { registry, log } = this.server;
    const { name, namespace } = polled.id;
    const serving = this.#serving(polled.id).find((model) => model.version === version);
    if (serving !== undefined && this.#canStay(serving, polled, previous)) {
      return this.#permits.run(() => this.#update(serving, polled), undefined);
    }
    log.info(`loading: ${name}:${version}`, { model: name, version });
    const leaving = this.#loaded(polled.id).find((model) => model.version === version && model !== serving);
    if (leaving !== undefined) this.#retire(leaving);
    const show = (state: "LOADING" | "UNAVAILABLE", reason = "") => {
      if (serving === undefined) registry.show({ name, namespace, version, state, reason });
    };
    show("LOADING");
    const staying =
      serving !== undefined && this.#mayMigrate(serving, polled, previous) ? serving : undefined;
    try {
      const made = await this.#permits.run(
        () =>
          this.#create(
            polled,
            version,
            serving,
            staying,
            loadsNow || serving?.residence?.isResident === true,
          ),
        undefined,
      );
      return made === serving ? { version } : { version, fresh: made };
    } catch (error) {
      const reason = statusText(error);
      show("UNAVAILABLE", reason);
      return { version, failure: `version ${version} is at UNAVAILABLE state: ${reason};` };
    }
  }

  #canStay(serving: ModelVersion, polled: PolledModel, previous: PolledModel | undefined): boolean {
    const prepared = this.#held.get(serving)?.prepared;
    return (
      !serving.isEnsemble &&
      prepared !== undefined &&
      !isVersionModified(previous?.times, polled.times, serving.version) &&
      !needsReload(prepared, polled.config)
    );
  }

  /** True for a version whose files are the same, and whose configuration may be changed while it serves. */
  #mayMigrate(serving: ModelVersion, polled: PolledModel, previous: PolledModel | undefined): boolean {
    const held = this.#held.get(serving);
    return (
      held !== undefined &&
      held.polled.override === undefined &&
      polled.override === undefined &&
      migrationObstacle(held.prepared, polled.config) === undefined &&
      !isVersionModified(previous?.times, polled.times, serving.version)
    );
  }

  /** Changes a version in place. The files that it was made of are released with its old instances. */
  async #migrate(serving: ModelVersion, polled: PolledModel, plan: ModelPlan): Promise<void> {
    const { removed } = await serving.migrate(plan);
    // A reload begins the statistics anew, as in Triton.
    serving.statistics.restart();
    const before = this.#held.get(serving)!;
    const agents = polled.agents?.hold();
    polled.copy?.retain();
    this.#held.set(serving, { prepared: polled.config, polled, agents });
    if (serving.residence === undefined) serving.reason = "";
    void removed.then(() => {
      void before.polled.copy?.release();
      before.agents?.leaves();
      before.agents?.gone();
    });
  }

  async #update(serving: ModelVersion, polled: PolledModel): Promise<VersionOutcome> {
    const { version } = serving;
    const { instanceGroup } = polled.config;
    try {
      const isSame = isDeepStrictEqual(this.#held.get(serving)?.prepared.instanceGroup, instanceGroup);
      const update = isSame
        ? undefined
        : await serving.updateInstances(this.#groupsFor(serving.config, instanceGroup));
      if (serving.residence === undefined) serving.reason = "";
      this.#held.get(serving)!.prepared = polled.config;
      return { version, ...update };
    } catch (error) {
      const reason = statusText(error);
      serving.reason = reason;
      this.server.log.error(`failed to load '${serving.name}' version ${version}: ${reason}`);
      return { version, failure: `version ${version} is at READY state: ${reason};` };
    }
  }

  /** Fills in the fields that instance groups leave open. */
  #groupsFor(config: ModelConfig, instanceGroup: ModelConfig["instanceGroup"]): ModelConfig["instanceGroup"] {
    const { gpus } = this.server;
    const completed = completeInstanceGroups({ ...config, instanceGroup }, gpus);
    throwProblems(instanceGroupProblems(completed, gpus));
    return completed.instanceGroup;
  }

  #publish(model: ModelVersion): void {
    const { registry } = this.server;
    const previous = this.#loaded(model).find(({ version }) => version === model.version);
    model.publish();
    registry.add(model);
    if (previous !== undefined && previous !== model) this.#retire(previous);
  }

  #serving(id: ModelId): ModelVersion[] {
    return this.#loaded(id).filter(({ state }) => state === "READY");
  }

  #loaded({ name, namespace }: ModelId): ModelVersion[] {
    return this.server.registry.created(name, namespace);
  }

  /** The versions that the policy of a model selects, ascending. Rejects when there are none. */
  async #findVersions(polled: PolledModel): Promise<readonly number[]> {
    const { versions, missing, ignored, problem } = await selectVersions(polled);
    for (const line of ignored) this.server.log.warning(line);
    for (const line of missing) this.server.log.error(line);
    if (problem !== undefined) throw errorFor("INVALID_CONFIG", problem);
    return versions;
  }

  /**
   * Creates a version and loads it. A version that fails is retried as often as the options say.
   *
   * @param serving the version that it replaces. Otherwise the registry shows the version while it loads
   * @param staying the same, if it may be changed in place. It is then returned, unless its file says otherwise
   * @throws the error of the last attempt
   */
  async #create(
    polled: PolledModel,
    version: number,
    serving: ModelVersion | undefined,
    staying: ModelVersion | undefined,
    loadsNow: boolean,
  ): Promise<ModelVersion> {
    for (let left = this.options.modelLoadRetryCount ?? 0; ; left--) {
      try {
        return await this.#createOnce(polled, version, serving, staying, loadsNow);
      } catch (error) {
        const { name } = polled.id;
        this.server.log.error(`failed to load '${name}' version ${version}: ${statusText(error)}`, {
          model: name,
          version,
        });
        if (left <= 0) throw error;
      }
    }
  }

  async #createOnce(
    polled: PolledModel,
    version: number,
    serving: ModelVersion | undefined,
    staying: ModelVersion | undefined,
    loadsNow: boolean,
  ): Promise<ModelVersion> {
    const { registry, log } = this.server;
    // A model that stays on disk is described without opening it.
    const opens = loadsNow || !this.server.startsOnDisk(polled.config);
    const { plan, close } = await planVersion(polled, version, this.options, this.server, opens);
    let model: ModelVersion;
    try {
      log.verbose(1, `\n${writePrototxt(plan.config)}`);
      const labels = new Map([...memberLabels(plan.config, registry), ...plan.labels]);
      if (staying !== undefined && migrationObstacle(staying.config, plan.config) === undefined) {
        await this.#migrate(staying, polled, { ...plan, labels });
        if (staying.residence !== undefined) await close();
        return staying;
      }
      model = this.server.create({ ...plan, labels, loadsNow });
    } catch (error) {
      await close();
      throw error;
    }
    if (serving === undefined && !model.isEnsemble) registry.add(model);
    const agents = polled.agents?.hold();
    try {
      await model.loaded;
      // Its description may have opened a model that stays on disk.
      if (model.residence !== undefined) await close();
    } catch (error) {
      agents?.leaves();
      agents?.gone();
      throw error;
    }
    polled.override?.retain();
    polled.copy?.retain();
    this.#held.set(model, { prepared: polled.config, polled, agents });
    return model;
  }

  #retire(model: ModelVersion): Promise<void> {
    const held = this.#held.get(model);
    this.#held.delete(model);
    held?.agents?.leaves();
    const ended = model.unload(Number.POSITIVE_INFINITY);
    this.server.registry.retire(model, ended);
    if (held === undefined) return ended;
    const { name, version } = model;
    void ended.then(() => {
      this.server.log.info(`successfully unloaded '${name}' version ${version}`, { model: name, version });
      void held.polled.override?.release();
      void held.polled.copy?.release();
      held.agents?.gone();
    });
    return ended;
  }
}

/** The directory (a copy, or the files of a load request) and the agents that a version holds until it is unloaded. */
interface HeldFiles {
  /** The configuration that the version was made from, before its file completed it. */
  prepared: ModelConfig;
  readonly polled: PolledModel;
  readonly agents: ReturnType<AgentChain["hold"]> | undefined;
}

/** Class names of an ensemble's outputs, from the models that make the outputs. */
function memberLabels(config: ModelConfig, registry: ModelRegistry): Map<string, readonly string[]> {
  const labels = new Map<string, readonly string[]>();
  for (const step of config.ensembleScheduling?.step ?? []) {
    const version = step.modelVersion === -1 ? "" : String(step.modelVersion);
    const member = registry.findMember(step.modelName, version, step.modelNamespace);
    for (const [output, tensor] of Object.entries(step.outputMap)) {
      const names = member.labels.get(output);
      if (names !== undefined) labels.set(tensor, names);
    }
  }
  return labels;
}

/** Instance groups change while a model serves, and the version policy only selects the versions that serve. */
export function needsReload(before: ModelConfig, after: ModelConfig): boolean {
  return !isDeepStrictEqual(withoutPlacement(before), withoutPlacement(after));
}

function withoutPlacement({ instanceGroup: _, versionPolicy: __, ...rest }: ModelConfig) {
  return rest;
}
