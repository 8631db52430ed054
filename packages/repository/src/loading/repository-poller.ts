import type { ExtensionServer, Log } from "@tritonjs/core/extension";
import { errorFor, statusText, TritonError } from "@tritonjs/protocol";
import type { ModelCopy } from "../directories/model-copy.js";
import type { ModelTimes, OverrideDirectory } from "../directories/model-directory.js";
import { type ModelPaths, openSources, type RepositorySource } from "../directories/repository-source.js";
import type { RepositoryOptions } from "../repository-options.js";
import { Dependencies, keyOf, type ModelId, type ModelKey, nameOf } from "./dependencies.js";
import { memberNames, type PolledModel, type PollTarget, pollModel } from "./poll-model.js";
import type { RepositoryAgents } from "./repository-agents.js";
import type { FailedLoads } from "./repository-families.js";

/** The server of a repository, with the log of models that load. */
export interface RepositoryServer extends Omit<ExtensionServer, "log"> {
  readonly log: Log;
}

/** The repositories and their models, as all parts of a repository know them. */
export class RepositoryState {
  /** Sorted by path. Changes when repositories are registered. */
  readonly sources: RepositorySource[];
  readonly models = new Map<ModelKey, PolledModel>();
  /** Why models cannot be in service apart from their files: for ensembles that lack a member. */
  readonly invalid = new Map<ModelKey, string>();
  readonly failed = new Map<ModelKey, string>();
  /** Files of the models whose last load failed. Polls do not load the same files again. */
  readonly failedFiles = new Map<ModelKey, ModelTimes>();
  readonly #unread = new Map<ModelKey, string>();
  readonly #loadFailures = new Map<string, number>();
  /** Log of what is done with a repository; the log of the server is that of models which load. */
  readonly log: Log;
  /** Polls in which a repository or the directory of a model had an error. */
  pollFailures = 0;

  constructor(
    readonly options: RepositoryOptions,
    readonly server: RepositoryServer,
  ) {
    this.log = server.log.of("model_repository_manager");
    this.sources = openSources([options.modelRepository ?? []].flat(), server.clock, this.log);
    this.sortSources();
  }

  sortSources(): void {
    this.sources.sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  idOf(repository: string, name: string): ModelId {
    return { namespace: this.server.registry.namespacing ? repository : "", name };
  }

  dependencies(models: ReadonlyMap<ModelKey, PolledModel> = this.models): Dependencies {
    return new Dependencies(models, (name) => this.server.registry.isBound(name));
  }

  named(name: string): [ModelKey, PolledModel][] {
    return [...this.models].filter(([, { id }]) => id.name === name);
  }

  problemOf(key: ModelKey): string | undefined {
    return this.#unread.get(key) ?? this.invalid.get(key) ?? this.failed.get(key);
  }

  problemOfName(name: string): string | undefined {
    const reasons = [...this.#unread, ...this.invalid, ...this.failed];
    return reasons.find(([key]) => nameOf(key) === name)?.[1];
  }

  copies(): ReadonlySet<ModelCopy> {
    return new Set([...this.models.values()].flatMap(({ copy }) => copy ?? []));
  }

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
      this.countLoadFailure(id);
      this.log.error(`Poll failed for model directory '${id.name}': ${problem.message}`);
    }
  }

  forget(key: ModelKey): PolledModel | undefined {
    const model = this.models.get(key);
    for (const map of [this.models, this.invalid, this.failed, this.failedFiles, this.#unread])
      map.delete(key);
    return model;
  }

  /** Forgets models that could not be read and whose directories are gone. */
  forgetUnread(isGone: (key: ModelKey) => boolean): void {
    for (const key of this.#unread.keys()) if (isGone(key)) this.#unread.delete(key);
  }

  countLoadFailure({ name }: ModelId): void {
    this.#loadFailures.set(name, (this.#loadFailures.get(name) ?? 0) + 1);
  }

  /** The failed loads of each model whose directory exists. */
  failedLoads(): FailedLoads[] {
    const names = new Set([...this.models.keys(), ...this.#unread.keys()].map(nameOf));
    for (const name of this.#loadFailures.keys()) if (!names.has(name)) this.#loadFailures.delete(name);
    return [...names].sort().map((model) => ({
      model,
      count: this.#loadFailures.get(model) ?? 0,
      isFailing: this.problemOfName(model) !== undefined,
    }));
  }
}

interface LoadOverride {
  /** A configuration in JSON, instead of the one in the model's directory. */
  readonly config?: string | undefined;
  /** Whether the configuration came over the network from a client that may not send files. */
  readonly fromNetwork?: boolean;
  /** The directory of the model, instead of the one in a repository. */
  readonly directory?: OverrideDirectory | undefined;
}

export interface Poll {
  readonly changed: ReadonlyMap<ModelKey, PolledModel>;
  readonly unchanged: ReadonlyMap<ModelKey, PolledModel>;
  /** Models that are missing, or that two repositories have. */
  readonly gone: ReadonlySet<ModelKey>;
  /** Why models cannot be polled, by name. */
  readonly problems: ReadonlyMap<string, TritonError>;
  /** Models that were asked for by name. */
  readonly byName?: ReadonlySet<string>;
}

export function pollResult(result: Partial<Poll>): Poll {
  return { changed: new Map(), unchanged: new Map(), gone: new Set(), problems: new Map(), ...result };
}

export class RepositoryPoller {
  constructor(
    private readonly state: RepositoryState,
    private readonly agents: RepositoryAgents,
  ) {}

  /** Rejects when a repository does not exist, or is not a directory. */
  async checkRepositories(): Promise<void> {
    for (const repository of this.state.sources) await repository.check();
  }

  /** Copies remote models to this machine: all models, or the given ones and all members of ensembles among them. */
  async refresh(names?: readonly string[], override: LoadOverride = {}): Promise<void> {
    const { sources, options } = this.state;
    if (!sources.some(({ isRemote }) => isRemote)) return;
    if (names === undefined) {
      await Promise.all(sources.map((source) => source.refresh()));
      return;
    }
    const seen = new Set<string>(names);
    for (let next = [...names], first = true; next.length > 0; first = false) {
      const given = first ? override : {};
      const wanted = given.directory === undefined ? next : [];
      await Promise.all(sources.map((source) => source.refresh(wanted)));
      const found =
        given.directory === undefined
          ? await Promise.all(sources.flatMap((one) => next.map((name) => pathsIn(one, name))))
          : [{ root: given.directory.path, directory: given.directory.path }];
      const read = found.flatMap((paths) => paths ?? []);
      const members = read.map((paths) => memberNames(paths, given.config, options));
      next = [...new Set((await Promise.all(members)).flat())].filter((name) => !seen.has(name));
      for (const name of next) seen.add(name);
    }
  }

  async all(): Promise<Poll> {
    const { sources, models } = this.state;
    const { log } = this.state;
    const targets = new Map<ModelKey, PollTarget>();
    const gone = new Set(models.keys());
    const problems = new Map<string, TritonError>();
    for (const repository of sources) {
      const { path } = repository;
      const names = await repository.names().catch((error) => {
        log.error(`failed to poll model repository '${path}': ${TritonError.from(error).message}`);
        problems.set(path, TritonError.from(error));
        return undefined;
      });
      if (names === undefined) {
        for (const [key, { repository }] of models) if (repository === path) gone.delete(key);
      }
      for (const name of names ?? []) {
        const id = this.state.idOf(path, name);
        const key = keyOf(id);
        gone.delete(key);
        if (targets.has(key)) problems.set(name, notUnique(name));
        else
          targets.set(key, {
            ...this.#target(id, repository, true),
            failed: this.state.failedFiles.get(key),
          });
      }
    }
    for (const name of problems.keys()) {
      const key = keyOf({ namespace: "", name });
      if (!targets.delete(key)) continue;
      gone.add(key);
      log.error(problems.get(name)!.message);
    }
    if (!sources.some(({ path }) => problems.has(path))) this.state.forgetUnread((key) => !targets.has(key));
    const polled = await this.#poll([...targets.values()], gone, problems);
    if (problems.size > 0) this.state.pollFailures++;
    return polled;
  }

  /** Polls models by name, and all members of ensembles among them. */
  async named(names: readonly string[], override: LoadOverride = {}): Promise<Poll> {
    const changed = new Map<ModelKey, PolledModel>();
    const unchanged = new Map<ModelKey, PolledModel>();
    const problems = new Map<string, TritonError>();
    const seen = new Set<string>();
    for (let next = [...names]; next.length > 0; ) {
      for (const name of next) seen.add(name);
      const found = await Promise.all(
        next.map((name) => this.#find(name, names.includes(name) ? override : undefined, problems)),
      );
      const polled = await this.#poll(found.flat(), new Set(), problems);
      for (const [key, model] of polled.changed) changed.set(key, model);
      for (const [key, model] of polled.unchanged) unchanged.set(key, model);
      const members = [...polled.changed.values(), ...polled.unchanged.values()].flatMap(({ config }) =>
        (config.ensembleScheduling?.step ?? []).map(({ modelName }) => modelName),
      );
      next = [...new Set(members)].filter(
        (name) => !seen.has(name) && !this.state.server.registry.isBound(name),
      );
    }
    return pollResult({ changed, unchanged, problems, byName: new Set(names) });
  }

  #target(id: ModelId, repository: RepositorySource, explicit: boolean): PollTarget {
    const previous = this.state.models.get(keyOf(id));
    const open = () => repository.open(id.name);
    return { id, repository: repository.path, previous, explicit, open };
  }

  async #find(
    name: string,
    override: LoadOverride | undefined,
    problems: Map<string, TritonError>,
  ): Promise<PollTarget[]> {
    const { sources, models, server } = this.state;
    const explicit = override !== undefined;
    if (override?.directory !== undefined) {
      const { config, directory } = override;
      const { path } = directory;
      const id = { namespace: "", name };
      const previous = models.get(keyOf(id));
      const open = async () => ({ root: path, directory: path });
      return [{ id, repository: path, previous, explicit, config, override: directory, open }];
    }
    const targets: PollTarget[] = [];
    for (const repository of sources) {
      if (!(await repository.has(name))) continue;
      const id = this.state.idOf(repository.path, name);
      const { config, fromNetwork } = override ?? {};
      targets.push({ ...this.#target(id, repository, explicit), config, fromNetwork });
    }
    if (!server.registry.namespacing && targets.length > 1) {
      const problem = notUnique(name);
      this.state.log.error(problem.message);
      problems.set(name, problem);
      return [];
    }
    if (targets.length === 0) {
      const problem = sources.flatMap((source) => source.problemOf(name) ?? [])[0] ?? notFound(name);
      this.state.log.error(problem.message);
      problems.set(name, problem);
    }
    return targets;
  }

  async #poll(
    targets: readonly PollTarget[],
    gone: ReadonlySet<ModelKey>,
    problems: Map<string, TritonError>,
  ): Promise<Poll> {
    const changed = new Map<ModelKey, PolledModel>();
    const unchanged = new Map<ModelKey, PolledModel>();
    const { server, options } = this.state;
    for (const target of targets) {
      const { id, previous } = target;
      const key = keyOf(id);
      try {
        if (server.registry.isBound(id.name)) {
          throw new TritonError(
            "ALREADY_EXISTS",
            `model '${id.name}' is already bound by the program: rename one of them`,
          );
        }
        const model = await pollModel(target, options, this.state.log, this.agents);
        if (model === previous) unchanged.set(key, { ...model, explicit: model.explicit || target.explicit });
        else changed.set(key, { ...model, explicit: target.explicit || (previous?.explicit ?? false) });
        this.state.noteUnread(id, undefined);
      } catch (thrown) {
        const problem = TritonError.from(thrown);
        problems.set(id.name, problem);
        this.state.noteUnread(id, problem);
        if (previous !== undefined) unchanged.set(key, previous);
      }
    }
    return { changed, unchanged, gone, problems };
  }
}

async function pathsIn(repository: RepositorySource, name: string): Promise<ModelPaths | undefined> {
  return (await repository.has(name)) ? repository.open(name).catch(() => undefined) : undefined;
}

function notFound(name: string): TritonError {
  const text = `failed to poll model '${name}': model not found in any model repository.`;
  return errorFor("MODEL_FILES_NOT_FOUND", text);
}

function notUnique(name: string): TritonError {
  return errorFor(
    "AMBIGUOUS_MODEL",
    `failed to poll model '${name}': not unique across all model repositories`,
  );
}
