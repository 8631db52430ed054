import { resolve } from "node:path";
import { type ModelConfig, type ModelIndexEntry, statusText, TritonError } from "@tritonjs/protocol";
import type { Gpus } from "../config/gpus.js";
import type { ModelPlan } from "../model/model-server.js";
import type { ModelVersion } from "../model/model-version.js";
import type { ModelRegistry } from "../model/registry.js";
import type { RegisteredVersion } from "../model/version-status.js";
import type { Log } from "../observe/log.js";
import type { Clock, Timer } from "../system/clock.js";
import { openSources } from "./cloud-source.js";
import { checkModelName, compareIds, keyOf, type ModelId, type ModelKey } from "./dependencies.js";
import { OverrideDirectory } from "./model-directory.js";
import { type LoadedModel, type LoaderContext, ModelLoader } from "./model-loader.js";
import { RepositoryAgents } from "./repository-agents.js";
import { RepositoryChanges, RepositoryState } from "./repository-changes.js";
import {
  type LoadParameters,
  type RepositoryOptions,
  startupModels,
  type UnloadParameters,
} from "./repository-options.js";
import { RepositoryPoller } from "./repository-poller.js";
import { MappedSource, type RepositorySource } from "./repository-source.js";

/**
 * Largest share by which a poll of remote storage comes early. A fifth spreads replicas over the whole interval within
 * a few polls.
 */
const POLL_JITTER = 0.2;

/** The parts of the server that a repository needs. */
interface RepositoryContext extends Omit<LoaderContext, "loadThreadCount" | "retryCount"> {
  readonly clock: Clock;
  readonly options: RepositoryOptions;
}

/**
 * The models of one or several repositories. It knows the existing models and those in service, and loads and unloads
 * them.
 */
export class ModelRepository {
  readonly #context: RepositoryContext;
  /** Changes when repositories are registered; the poller and the index read it each time. */
  readonly #repositories: RepositorySource[];
  readonly #state: RepositoryState;
  readonly #loader: ModelLoader;
  readonly #poller: RepositoryPoller;
  readonly #agents: RepositoryAgents;
  /** Files of load requests that models are made of. */
  readonly #overrides = new Set<OverrideDirectory>();
  readonly #changes: RepositoryChanges;
  readonly #presence: RepositoryPresence;
  #timer: Timer | undefined;
  #closed = false;

  constructor(context: RepositoryContext) {
    const { options, registry, log } = context;
    const paths = [options.modelRepository ?? []].flat();
    this.#context = context;
    this.#state = new RepositoryState(log);
    this.#repositories = openSources(paths, context).sort((a, b) => (a.path < b.path ? -1 : 1));
    this.#loader = new ModelLoader({
      ...context,
      loadThreadCount: options.modelLoadThreadCount ?? 4,
      retryCount: options.modelLoadRetryCount ?? 0,
    });
    this.#changes = new RepositoryChanges({
      ...context,
      state: this.#state,
      loader: this.#loader,
      repositories: this.#repositories,
    });
    this.#presence = new RepositoryPresence(this.#repositories, log, context.clock);
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
   * Loads the models of the start, and begins to poll if the mode is `poll`.
   *
   * @returns the failures, one line for each model
   * @throws TritonError INTERNAL for a repository that does not exist.
   */
  async start(): Promise<string[]> {
    const { modelControlMode: mode = "none" } = this.#context.options;
    if (this.#repositories.length === 0 || this.#closed) return [];
    await this.#poller.checkRepositories();
    const first = startupModels(this.#context.options);
    const { poll } = await this.#changes.apply(
      () => (first ? this.#poller.named(first) : this.#poller.all()),
      () => this.#poller.refresh(first),
    );
    if (mode === "poll") this.#pollLater();
    const failures = [...poll.problems].map(([name, { message }]) => `${name}: ${message}`);
    return [...failures, ...this.#state.failures()];
  }

  /**
   * Loads or reloads a model. Returns once all its versions are in service. A version in service stays when loading
   * fails.
   *
   * @returns when the instances that the reload removed are released
   * @throws TritonError UNAVAILABLE unless the mode is `explicit`, INTERNAL (Triton's text; `cause` has the reason) for
   * a model that does not exist or whose configuration is rejected, INVALID_ARG with the state of each version that
   * could not be loaded, and for names that cannot be directories.
   */
  async loadModel(name: string, { config, files }: LoadParameters = {}): Promise<LoadedModel> {
    this.#assertExplicit();
    checkModelName(name);
    const directory = await OverrideDirectory.forLoad(config, files, this.#overrides).catch((error) => {
      const problem = TritonError.from(error);
      this.#context.log.error(`Poll failed for model directory '${name}': ${problem.message}`);
      throw pollFailure(name, problem);
    });
    try {
      const { poll, failed, removed } = await this.#changes.apply(
        () => this.#poller.named([name], { config, directory }),
        () => this.#poller.refresh([name], { config, directory }),
      );
      const errors = this.#state
        .named(name)
        .flatMap(([key]) => this.#state.invalid.get(key) ?? failed.get(key) ?? [])
        .map((message) => `load failed for model '${name}': ${message}\n`);
      if (errors.length > 0)
        throw new TritonError("INVALID_ARG", errors.join(""), { reason: "LOAD_REQUEST_FAILED" });
      if (poll.problems.size > 0) throw pollFailure(name, [...poll.problems.values()][0]);
      return { removed };
    } finally {
      await directory?.release();
    }
  }

  /**
   * Takes a model out of service. Its requests in flight are answered. A model that is not in service stays unchanged.
   *
   * @returns when no version takes requests any more; `ended` resolves when the requests in flight are answered
   * @throws TritonError UNAVAILABLE unless the mode is `explicit`.
   */
  async unloadModel(
    name: string,
    { unloadDependents = false }: UnloadParameters = {},
  ): Promise<{ readonly ended: Promise<void> }> {
    this.#assertExplicit();
    let ended: Promise<void> = Promise.resolve();
    await this.#changes.apply(
      async () => {
        const named = this.#state.named(name).map(([key]) => key);
        const gone = unloadDependents ? this.#changes.dependencies().withOrphans(named) : new Set(named);
        return { changed: new Map(), unchanged: new Map(), gone, problems: new Map() };
      },
      undefined,
      (unloading) => {
        ended = unloading;
      },
    );
    return { ended };
  }

  /**
   * Adds a directory of models, whose models load on request.
   *
   * @param modelNames other names for its models, by the names of their directories
   * @throws TritonError UNAVAILABLE unless the mode is `explicit`, INVALID_ARG for a directory that does not exist or a
   * bad name, ALREADY_EXISTS if the directory is registered.
   */
  async register(path: string, modelNames: Readonly<Record<string, string>> = {}): Promise<void> {
    this.#assertExplicit();
    const directories = new Map(Object.entries(modelNames).map(([directory, name]) => [name, directory]));
    for (const [name, directory] of directories) {
      checkModelName(name);
      checkModelName(directory);
    }
    const source = new MappedSource(resolve(path), directories);
    await source.check().catch((cause) => {
      throw new TritonError("INVALID_ARG", `failed to register '${path}', repository not found`, {
        reason: "INVALID_REPOSITORY",
        cause,
      });
    });
    if (this.#repositories.some((one) => one.path === source.path)) {
      throw new TritonError("ALREADY_EXISTS", `model repository '${path}' has already been registered`);
    }
    this.#repositories.push(source);
    this.#repositories.sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  /**
   * Removes a registered directory. Its models that are in service stay so until they are unloaded.
   *
   * @throws TritonError UNAVAILABLE unless the mode is `explicit`, INVALID_ARG if the directory is not registered.
   */
  unregister(path: string): void {
    this.#assertExplicit();
    const at = this.#repositories.findIndex(
      (one) => one instanceof MappedSource && one.path === resolve(path),
    );
    if (at < 0) {
      throw new TritonError("INVALID_ARG", `failed to unregister '${path}', repository not found`, {
        reason: "INVALID_REPOSITORY",
      });
    }
    this.#repositories.splice(at, 1);
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

  /** Whether some model has no version that can be created. */
  get lacksVersions(): boolean {
    const { models, failed } = this.#state;
    const names = [...failed.keys()].map((key) => models.get(key)?.id.name ?? "");
    return names.some((name) => this.#context.registry.versions(name).length === 0);
  }

  /** Why a model of the repository is not served; undefined if no reason is known. */
  problemOf(name: string): string | undefined {
    return this.#state.problemOfName(name);
  }

  /** Warns if a directory is missing. A readiness request calls it. With polling, each poll reports the same. */
  checkPresence(): void {
    if (this.#context.options.modelControlMode !== "poll") this.#presence.look();
  }

  /** Whether the repository has a model of the name. */
  has(name: string): boolean {
    return this.#state.named(name).length > 0;
  }

  /** Retries ensembles that may have waited for a model that has been bound. */
  boundModelCame(): void {
    const { models, invalid } = this.#state;
    if (invalid.size === 0) return;
    void this.#changes
      .apply(async () => {
        const waiting = [...models].filter(([key]) => invalid.has(key));
        return { changed: new Map(waiting), unchanged: new Map(), gone: new Set(), problems: new Map() };
      })
      .catch((error) => this.#context.log.error(statusText(error)));
  }

  /** Stops polling. Loads in flight still complete. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    for (const repository of this.#repositories) repository.abort();
    await this.#changes.end();
  }

  /** Ends the agents, and removes copies and files of load requests, after all models have unloaded. */
  async ended(): Promise<void> {
    await this.#agents.end();
    await Promise.all([...this.#overrides].map((directory) => directory.remove()));
    await Promise.all(this.#repositories.map((repository) => repository.close()));
  }

  /**
   * The pause before the next poll, at most the interval. Storage that other servers poll too gets a shorter one by
   * chance, so that replicas that started together do not ask it together for ever.
   */
  #pollPauseMs(intervalMs: number): number {
    if (!this.#repositories.some(({ isRemote }) => isRemote)) return intervalMs;
    return intervalMs * (1 - POLL_JITTER * Math.random());
  }

  #pollLater(): void {
    if (this.#closed) return;
    const { clock, options, log } = this.#context;
    this.#timer = clock.setTimer(this.#pollPauseMs((options.repositoryPollSecs ?? 15) * 1000), () => {
      void this.#changes
        .apply(
          () => this.#poller.all(),
          () => this.#poller.refresh(),
        )
        .catch((error) => {
          if (!this.#closed) log.error(statusText(error));
        })
        .finally(() => this.#pollLater());
    });
  }

  #assertExplicit(): void {
    if (this.#context.options.modelControlMode === "explicit" && !this.#closed) return;
    throw new TritonError(
      "UNAVAILABLE",
      "explicit model load / unload is not allowed if polling is enabled",
      { reason: "MODEL_CONTROL_DISABLED" },
    );
  }
}

/** The error for a client whose model could not be read. The cause is not sent. */
function pollFailure(name: string, cause: unknown): TritonError {
  const text = `failed to load '${name}', failed to poll from model repository`;
  return new TritonError("INTERNAL", text, { reason: "FILE_NOT_READABLE", cause });
}

/** The parts of the server that a repository needs. */
interface RepositoryParts {
  readonly options: RepositoryOptions;
  readonly registry: ModelRegistry;
  readonly log: Log;
  readonly clock: Clock;
  readonly gpus: Gpus;
}

/** Creates the repository for the options. Without `modelRepository` it is empty. */
export function createRepository(
  { options, registry, log, clock, gpus }: RepositoryParts,
  createModel: (plan: ModelPlan) => ModelVersion,
): ModelRepository {
  return new ModelRepository({
    options,
    registry,
    log,
    clock,
    gpus,
    createModel,
    backends: options.backends ?? {},
    backendDirectory: options.backendDirectory,
    backendConfig: options.backendConfig ?? {},
    autoComplete: !(options.disableAutoCompleteConfig ?? false),
    memberLabels: (config) => memberLabels(config, registry),
  });
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

/** The reasons are already in the log, one line for each model. */
const NOT_ALL = "failed to load all models";

/** Loads the models of the repository at the start, in the background. */
export class StartUp {
  /** True until the start has ended, with success or not. */
  underWay = true;
  /** Whether the start failed before any model could be polled. The server then runs, but is never ready. */
  failed = false;
  /** Resolves when the start has ended. */
  readonly over: Promise<void>;
  readonly #exitOnError: boolean;
  readonly #log: Log;
  #awaited = false;
  #error: TritonError | undefined;

  constructor(repository: ModelRepository, { exitOnError = true }: RepositoryOptions, log: Log) {
    this.#exitOnError = exitOnError;
    this.#log = log;
    this.over = this.#run(repository);
  }

  /** Resolves when the start succeeds, or when its failure is allowed. @throws TritonError that names all failures */
  async succeeded(): Promise<void> {
    this.#awaited = true;
    await this.over;
    if (this.#error !== undefined && this.#exitOnError) throw this.#error;
  }

  async #run(repository: ModelRepository): Promise<void> {
    try {
      // The program may bind models next that are members of ensembles in the repository.
      await Promise.resolve();
      const failures = await repository.start();
      if (failures.length > 0) {
        const text = `${NOT_ALL}\n${failures.join("\n")}`;
        this.#error = new TritonError("INTERNAL", text, { reason: "STARTUP_FAILED" });
        // As in Triton, a server that continues says so.
        if (!this.#exitOnError) this.#log.error(`Internal: ${NOT_ALL}`);
      }
    } catch (error) {
      this.#error = TritonError.from(error);
      this.failed = true;
      // Callers that wait get the error. A program that closes during the start has no interest in it.
      const isTold = this.#exitOnError && this.#awaited;
      if (!isTold && this.#error.reason !== "SERVER_STOPPING") this.#log.error(statusText(error));
    } finally {
      this.underWay = false;
    }
  }
}

/** Time between two checks of the directories, so that readiness probes cost nothing. */
const LOOK_EVERY_MS = 10_000;

/**
 * Warns once when the directory of a repository is missing. The loaded models stay in service, but a restart or a load
 * would fail.
 */
class RepositoryPresence {
  readonly #repositories: readonly RepositorySource[];
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #gone = new Set<RepositorySource>();
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(repositories: readonly RepositorySource[], log: Log, clock: Clock) {
    this.#repositories = repositories.filter(({ isRemote }) => !isRemote);
    this.#log = log;
    this.#clock = clock;
  }

  /** Checks in the background, unless a recent check is still valid. */
  look(): void {
    const now = this.#clock.now();
    if (this.#repositories.length === 0 || now - this.#lookedAt < LOOK_EVERY_MS) return;
    this.#lookedAt = now;
    for (const repository of this.#repositories) void this.#lookAt(repository);
  }

  async #lookAt(repository: RepositorySource): Promise<void> {
    try {
      await repository.check();
      this.#gone.delete(repository);
    } catch (error) {
      if (this.#gone.has(repository)) return;
      this.#gone.add(repository);
      const { message } = TritonError.from(error);
      this.#log.warning(
        `${message}: its loaded models stay in service, but none of its models can be loaded`,
      );
    }
  }
}

/** The source of the index. */
interface IndexSource {
  readonly repositories: readonly RepositorySource[];
  readonly namespacing: boolean;
  readonly registry: ModelRegistry;
  /** Why models without any version are unavailable. */
  readonly problemOf: (key: ModelKey) => string | undefined;
}

/**
 * The repository index. It has the models in the directories of the repositories and the models that the program binds,
 * with their present and past versions. A model that two repositories have is unavailable.
 */
async function indexRows(onlyReady: boolean, source: IndexSource): Promise<ModelIndexEntry[]> {
  const { registry } = source;
  const { ids, duplicates } = await modelsIn(source);
  return [...ids]
    .sort(([, a], [, b]) => compareIds(a, b))
    .flatMap(([key, { name, namespace }]) => {
      if (duplicates.has(key)) {
        return [{ name, state: "UNAVAILABLE", reason: "model appears in two or more repositories" }];
      }
      const versions = registry.versions(name, namespace);
      const reason = source.problemOf(key);
      if (versions.length === 0 && !onlyReady) {
        return [reason === undefined ? { name } : { name, state: "UNAVAILABLE", reason }];
      }
      return versions.filter(({ state }) => !onlyReady || state === "READY").map(rowOf);
    });
}

async function modelsIn({ repositories, namespacing, registry }: IndexSource) {
  const ids = new Map<ModelKey, ModelId>();
  const duplicates = new Set<ModelKey>();
  const listed = await Promise.all(repositories.map((repository) => repository.listed()));
  for (const [i, { path }] of repositories.entries()) {
    for (const name of listed[i]!) {
      const id = { namespace: namespacing ? path : "", name };
      const key = keyOf(id);
      if (ids.has(key)) duplicates.add(key);
      ids.set(key, id);
    }
  }
  for (const { name } of registry.bound()) {
    const id = { namespace: "", name };
    duplicates.delete(keyOf(id));
    ids.set(keyOf(id), id);
  }
  return { ids, duplicates };
}

function rowOf({ name, version, state, reason }: RegisteredVersion): ModelIndexEntry {
  return { name, version: String(version), state, ...(reason === "" ? {} : { reason }) };
}
