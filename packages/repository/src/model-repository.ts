import { resolve } from "node:path";
import {
  controlDisabled,
  everyMs,
  indexEntry,
  type LoadParameters,
  type Log,
  type ModelControlMode,
  type ModelSource,
  quietTimers,
  type RegisteredVersion,
  type StartUp,
  type Timer,
  type UnloadParameters,
} from "@tritonjs/core/extension";
import { SUBSTITUTED } from "@tritonjs/core/internal";
import { errorFor, type ModelIndexEntry, statusText, TritonError } from "@tritonjs/protocol";
import { readSubstitutes } from "./config/substitutes.js";
import { OverrideDirectory } from "./directories/model-directory.js";
import { MappedSource, type RepositorySource } from "./directories/repository-source.js";
import { checkModelName, compareIds, keyOf, type ModelId, type ModelKey } from "./loading/dependencies.js";
import { RepositoryAgents } from "./loading/repository-agents.js";
import { type LoadedModel, ModelLoader, RepositoryChanges } from "./loading/repository-changes.js";
import type { RepositoryFailures } from "./loading/repository-families.js";
import {
  pollResult,
  RepositoryPoller,
  type RepositoryServer,
  RepositoryState,
} from "./loading/repository-poller.js";
import { type RepositoryOptions, startupModels } from "./repository-options.js";

/** Largest share by which a poll of remote storage comes early, so that replicas spread out within a few polls. */
const POLL_JITTER = 0.2;

/** Time between two checks of the directories, so that readiness probes cost nothing. */
const CHECK_EVERY_MS = 10_000;

/** The models of one or several repositories: those that exist, and those in service. */
export class ModelRepository implements ModelSource {
  readonly controlMode: ModelControlMode;
  readonly namespacing: boolean;
  readonly startUp: RepositoryStart;
  readonly #state: RepositoryState;
  readonly #poller: RepositoryPoller;
  readonly #agents: RepositoryAgents;
  readonly #changes: RepositoryChanges;
  /** Files of load requests that models are made of. */
  readonly #overrides = new Set<OverrideDirectory>();
  readonly #missing = new Set<RepositorySource>();
  readonly #mayCheck: () => boolean;
  #timer: Timer | undefined;
  #closed = false;

  constructor(
    private readonly options: RepositoryOptions,
    private readonly server: RepositoryServer,
  ) {
    this.controlMode = options.modelControlMode ?? "none";
    this.namespacing = options.modelNamespacing ?? false;
    this.#state = new RepositoryState(options, server);
    this.#mayCheck = everyMs(server.clock, CHECK_EVERY_MS);
    this.#agents = new RepositoryAgents(options, server.log.of("repo_agent"), server.clock);
    this.#poller = new RepositoryPoller(this.#state, this.#agents);
    this.#changes = new RepositoryChanges(this.#state, new ModelLoader(options, server));
    if (options.substitutes !== undefined) readSubstitutes(options.substitutes);
    this.startUp = new RepositoryStart(options, this.#state.log);
  }

  /** Begins to load the models of the start. */
  start(): void {
    void this.startUp.run(() => this.#start());
  }

  /**
   * Loads the models of the start, and begins to poll if the mode is `poll`.
   *
   * @returns the failures, one line for each model
   * @throws TritonError INTERNAL for a repository that does not exist.
   */
  async #start(): Promise<string[]> {
    if (this.#state.sources.length === 0 || this.#closed) return [];
    await this.#poller.checkRepositories();
    const first = startupModels(this.options);
    const { poll } = await this.#changes.apply(
      () => (first ? this.#poller.named(first) : this.#poller.all()),
      () => this.#poller.refresh(first),
    );
    if (this.options.modelControlMode === "poll") this.#pollLater();
    for (const { model } of this.options.substitutes ?? []) {
      const isKnown = [...this.#state.models.values()].some(({ id }) => id.name === model);
      if (model !== undefined && first === undefined && !isKnown && !poll.problems.has(model)) {
        this.#state.log.error(`a substitute is for model '${model}', but no repository has such a model`);
      }
    }
    const failures = [...poll.problems].map(([name, { message }]) => `${name}: ${message}`);
    return [...failures, ...this.#state.failures()];
  }

  /**
   * Loads or reloads a model. Returns once all its versions are in service. A version in service stays when loading
   * fails.
   *
   * @param fromClient whether the parameters came over the network. Unless an option allows it, they then have no files,
   * and the configuration cannot name paths outside of the repository
   * @returns when the instances that the reload removed are released
   * @throws TritonError UNAVAILABLE unless the mode is `explicit`, INTERNAL (Triton's text; `cause` has the reason) for
   * a model that does not exist or whose configuration is rejected, INVALID_ARG with the state of each version that
   * could not be loaded, and for names that cannot be directories.
   */
  async load(name: string, { config, files }: LoadParameters = {}, fromClient = false): Promise<LoadedModel> {
    const fromNetwork = fromClient && this.options.allowModelFileOverride !== true;
    if (fromNetwork && files !== undefined && files.size > 0) {
      throw errorFor(
        "MODEL_FILES_DISABLED",
        `Files of load requests are disabled, got ${files.size} for model '${name}'. Start the server with ` +
          "'--allow-model-file-override=true' to enable.",
      );
    }
    this.#assertExplicit();
    checkModelName(name);
    const directory = await OverrideDirectory.forLoad(config, files, this.#overrides).catch((error) => {
      const problem = TritonError.from(error);
      this.#state.log.error(`Poll failed for model directory '${name}': ${problem.message}`);
      throw pollFailure(name, problem);
    });
    try {
      const { poll, failed, removed } = await this.#changes.apply(
        () => this.#poller.named([name], { config, directory, fromNetwork }),
        () => this.#poller.refresh([name], { config, directory }),
      );
      const errors = this.#state
        .named(name)
        .flatMap(([key]) => this.#state.invalid.get(key) ?? failed.get(key) ?? [])
        .map((message) => `load failed for model '${name}': ${message}\n`);
      if (errors.length > 0) throw errorFor("LOAD_REQUEST_FAILED", errors.join(""));
      const [problem] = poll.problems.values();
      if (problem !== undefined)
        throw problem.reason === "LOAD_PATH_NOT_ALLOWED" ? problem : pollFailure(name, problem);
      for (const { residence } of this.server.registry.ready(name)) await residence?.start(true);
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
  async unload(
    name: string,
    { unloadDependents = false }: UnloadParameters = {},
  ): Promise<{ readonly ended: Promise<void> }> {
    this.#assertExplicit();
    let ended: Promise<void> = Promise.resolve();
    await this.#changes.apply(
      async () => {
        const named = this.#state.named(name).map(([key]) => key);
        const gone = unloadDependents ? this.#state.dependencies().withOrphans(named) : new Set(named);
        return pollResult({ gone });
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
      throw errorFor("INVALID_REPOSITORY", `failed to register '${path}', repository not found`, { cause });
    });
    if (this.#state.sources.some((one) => one.path === source.path)) {
      throw new TritonError("ALREADY_EXISTS", `model repository '${path}' has already been registered`);
    }
    this.#state.sources.push(source);
    this.#state.sortSources();
  }

  /**
   * Removes a registered directory. Its models that are in service stay so until they are unloaded.
   *
   * @throws TritonError UNAVAILABLE unless the mode is `explicit`, INVALID_ARG if the directory is not registered.
   */
  unregister(path: string): void {
    this.#assertExplicit();
    const at = this.#state.sources.findIndex(
      (one) => one instanceof MappedSource && one.path === resolve(path),
    );
    if (at < 0) {
      throw errorFor("INVALID_REPOSITORY", `failed to unregister '${path}', repository not found`);
    }
    this.#state.sources.splice(at, 1);
  }

  /**
   * The repository index. It has the models in the directories of the repositories and the models that the program
   * binds, with their present and past versions. A model that two repositories have is unavailable.
   */
  async index(onlyReady: boolean): Promise<ModelIndexEntry[]> {
    const { registry } = this.server;
    const { sources } = this.#state;
    const ids = new Map<ModelKey, ModelId>();
    const duplicates = new Set<ModelKey>();
    const listed = await Promise.all(sources.map((source) => source.listed()));
    for (const [i, { path }] of sources.entries()) {
      for (const name of listed[i]!) {
        const id = this.#state.idOf(path, name);
        if (ids.has(keyOf(id))) duplicates.add(keyOf(id));
        ids.set(keyOf(id), id);
      }
    }
    for (const { name } of registry.bound()) {
      const id = { namespace: "", name };
      duplicates.delete(keyOf(id));
      ids.set(keyOf(id), id);
    }
    return [...ids]
      .sort(([, a], [, b]) => compareIds(a, b))
      .flatMap(([key, { name, namespace }]) => {
        if (duplicates.has(key)) {
          return [{ name, state: "UNAVAILABLE", reason: "model appears in two or more repositories" }];
        }
        const versions = registry.versions(name, namespace);
        const reason = this.#state.problemOf(key);
        if (versions.length === 0 && !onlyReady) {
          return [reason === undefined ? { name } : { name, state: "UNAVAILABLE", reason }];
        }
        const rows = versions.map(rowOf);
        return onlyReady ? rows.filter(({ state }) => state === "READY") : rows;
      });
  }

  /** Whether some model has no version that can be created. */
  get lacksVersions(): boolean {
    const { models, failed } = this.#state;
    const names = [...failed.keys()].map((key) => models.get(key)?.id.name ?? "");
    return names.some((name) => this.server.registry.versions(name).length === 0);
  }

  problemOf(name: string): string | undefined {
    return this.#state.problemOfName(name);
  }

  /** Failed loads by model, and failed polls. */
  failures(): RepositoryFailures {
    return { models: () => this.#state.failedLoads(), polls: this.#state.pollFailures };
  }

  /**
   * Warns once when the directory of a repository is missing, in the background. Its loaded models stay in service, but
   * a restart or a load would fail. A readiness request calls it. With polling, each poll reports the same.
   */
  checkPresence(): void {
    if (this.options.modelControlMode === "poll" || !this.#mayCheck()) return;
    for (const source of this.#state.sources) if (!source.isRemote) void this.#checkPresenceOf(source);
  }

  async #checkPresenceOf(source: RepositorySource): Promise<void> {
    try {
      await source.check();
      this.#missing.delete(source);
    } catch (error) {
      if (this.#missing.has(source)) return;
      this.#missing.add(source);
      const { message } = TritonError.from(error);
      this.#state.log.warning(
        `${message}: its loaded models stay in service, but none of its models can be loaded`,
      );
    }
  }

  has(name: string): boolean {
    return this.#state.named(name).length > 0;
  }

  /** Retries ensembles that may have waited for a model that has been bound. */
  bound(): void {
    const { models, invalid } = this.#state;
    if (invalid.size === 0) return;
    void this.#changes
      .apply(async () => {
        return pollResult({ changed: new Map([...models].filter(([key]) => invalid.has(key))) });
      })
      .catch((error) => this.#state.log.error(statusText(error)));
  }

  /** Stops polling. Loads in flight still complete. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    for (const repository of this.#state.sources) repository.abort();
    await this.#changes.end();
  }

  /** Ends the agents, and removes copies and files of load requests, after all models have unloaded. */
  async dispose(): Promise<void> {
    await this.#agents.end();
    await Promise.all([...this.#overrides].map((directory) => directory.remove()));
    await Promise.all(this.#state.sources.map((repository) => repository.close()));
    await Promise.all((this.options.modelFormats ?? []).map((format) => format.close?.()));
  }

  /** Polls of shared storage are jittered, so that replicas that started together spread out. */
  #pollLater(): void {
    if (this.#closed) return;
    const { clock } = this.server;
    const { log } = this.#state;
    const { repositoryPollSecs = 15 } = this.options;
    const jitter = this.#state.sources.some(({ isRemote }) => isRemote) ? POLL_JITTER * Math.random() : 0;
    this.#timer = quietTimers(clock).setTimer(repositoryPollSecs * 1000 * (1 - jitter), () => {
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
    if (this.options.modelControlMode === "explicit" && !this.#closed) return;
    throw controlDisabled();
  }
}

/** The error for a client whose model could not be read. The cause is not sent. */
function pollFailure(name: string, cause: unknown): TritonError {
  const text = `failed to load '${name}', failed to poll from model repository`;
  return errorFor("FILE_NOT_READABLE", text, { cause });
}

/** The reasons are already in the log, one line for each model. */
const NOT_ALL = "failed to load all models";

class RepositoryStart implements StartUp {
  /** True until the start has ended, with success or not. */
  underWay = true;
  /** Whether the start failed before any model could be polled. The server then runs, but is never ready. */
  failed = false;
  readonly over: Promise<void>;
  readonly #exitOnError: boolean;
  #end: () => void = () => {};
  #awaited = false;
  #error: TritonError | undefined;

  constructor(
    { exitOnError = true }: RepositoryOptions,
    private readonly log: Log,
  ) {
    this.#exitOnError = exitOnError;
    this.over = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  /** Resolves when the start succeeds, or when its failure is allowed. @throws TritonError that names all failures */
  async succeeded(): Promise<void> {
    this.#awaited = true;
    await this.over;
    if (this.#error !== undefined && this.#exitOnError) throw this.#error;
  }

  /** @param start loads the models; returns the failures, one line for each model */
  async run(start: () => Promise<string[]>): Promise<void> {
    try {
      // The program may bind models next that are members of ensembles in the repository.
      await Promise.resolve();
      const failures = await start();
      if (failures.length > 0) {
        const text = `${NOT_ALL}\n${failures.join("\n")}`;
        this.#error = errorFor("STARTUP_FAILED", text);
        // As in Triton, a server that continues says so.
        if (!this.#exitOnError) this.log.error(`Internal: ${NOT_ALL}`);
      }
    } catch (error) {
      this.#error = TritonError.from(error);
      this.failed = true;
      // Callers that wait get the error. A program that closes during the start has no interest in it.
      const isThrown = this.#exitOnError && this.#awaited;
      if (!isThrown && this.#error.reason !== "SERVER_STOPPING") this.log.error(statusText(error));
    } finally {
      this.underWay = false;
      this.#end();
    }
  }
}

function rowOf(one: RegisteredVersion): ModelIndexEntry {
  const entry = indexEntry(one);
  const substitute = one.config?.parameters[SUBSTITUTED]?.stringValue;
  if (entry.state !== "READY" || substitute === undefined) return entry;
  return { ...entry, reason: `a substitute ${substitute}` };
}
