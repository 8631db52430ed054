import { TritonError } from "@tritonjs/protocol";
import type { OverrideDirectory } from "./layout/override-directory.js";
import { keyOf, type ModelId, type ModelKey } from "./model-id.js";
import { memberNames, type PollContext, type PolledModel, type PollTarget, pollModel } from "./poll-model.js";
import type { ModelPlace, RepositorySource } from "./sources/repository-source.js";

/** What comes with a load request. */
export interface LoadOverride {
  /** A configuration in JSON, instead of the one in the model's directory. */
  readonly config?: string | undefined;
  /** The directory of the model, instead of the one in a repository. */
  readonly directory?: OverrideDirectory | undefined;
}

/** What looking at directories brought to light. */
export interface Poll {
  readonly changed: ReadonlyMap<ModelKey, PolledModel>;
  readonly unchanged: ReadonlyMap<ModelKey, PolledModel>;
  /** Models that are not there any more, or that two repositories have. */
  readonly gone: ReadonlySet<ModelKey>;
  /** What keeps models from being looked at, by name. */
  readonly problems: ReadonlyMap<string, TritonError>;
}

/** What the poller knows of the server. */
export interface PollerContext extends PollContext {
  readonly repositories: readonly RepositorySource[];
  readonly namespacing: boolean;
  /** Models as they were found the last time. */
  readonly known: ReadonlyMap<ModelKey, PolledModel>;
  /** Tells of models that are not of the repository. */
  readonly isBound: (name: string) => boolean;
  /** Told why a model could not be read; undefined once it can. */
  readonly onProblem: (id: ModelId, problem: TritonError | undefined) => void;
}

/** A model to be looked at, wherever its files turn out to be. */
interface Wanted extends Omit<PollTarget, keyof ModelPlace> {
  open(): Promise<ModelPlace>;
}

/** Looks at the directories of models. */
export class RepositoryPoller {
  readonly #context: PollerContext;

  constructor(context: PollerContext) {
    this.#context = context;
  }

  /**
   * Makes sure that all repositories are there.
   *
   * @throws TritonError INTERNAL for one that is not there, INVALID_ARG for one that is no directory
   */
  async checkRepositories(): Promise<void> {
    for (const repository of this.#context.repositories) await repository.check();
  }

  /** Brings what is elsewhere to this machine: all models, or some with all that ensembles among them are made of. */
  async refresh(names?: readonly string[], override: LoadOverride = {}): Promise<void> {
    const { repositories, modelConfigName } = this.#context;
    if (!repositories.some(({ isRemote }) => isRemote)) return;
    if (names === undefined) {
      await Promise.all(repositories.map((repository) => repository.refresh()));
      return;
    }
    const seen = new Set<string>(names);
    for (let next = [...names], first = true; next.length > 0; first = false) {
      const given = first ? override : {};
      const wanted = given.directory === undefined ? next : [];
      await Promise.all(repositories.map((repository) => repository.refresh(wanted)));
      const places =
        given.directory === undefined
          ? await Promise.all(repositories.flatMap((one) => next.map((name) => placeIn(one, name))))
          : [{ root: given.directory.path, directory: given.directory.path }];
      const read = places.flatMap((place) => place ?? []);
      const members = read.map((place) => memberNames(place, given.config, modelConfigName));
      next = [...new Set((await Promise.all(members)).flat())].filter((name) => !seen.has(name));
      for (const name of next) seen.add(name);
    }
  }

  /** Looks at all models of all repositories. */
  async all(): Promise<Poll> {
    const { repositories, namespacing, known, log } = this.#context;
    const targets = new Map<ModelKey, Wanted>();
    const gone = new Set(known.keys());
    const problems = new Map<string, TritonError>();
    for (const repository of repositories) {
      const { path } = repository;
      const names = await repository.names().catch((error) => {
        log.error(`failed to poll model repository '${path}': ${TritonError.from(error).message}`);
        problems.set(path, TritonError.from(error));
        return undefined;
      });
      if (names === undefined) for (const key of inRepository(known, path)) gone.delete(key);
      for (const name of names ?? []) {
        const id = { namespace: namespacing ? path : "", name };
        const key = keyOf(id);
        gone.delete(key);
        if (targets.has(key)) problems.set(name, notUnique(name));
        else targets.set(key, this.#wanted(id, repository, true));
      }
    }
    for (const name of problems.keys()) {
      const key = keyOf({ namespace: "", name });
      if (!targets.delete(key)) continue;
      gone.add(key);
      log.error(problems.get(name)!.message);
    }
    return this.#poll([...targets.values()], gone, problems);
  }

  /** Looks at models by name, and at all that ensembles among them are made of. */
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
      const poll = await this.#poll(found.flat(), new Set(), problems);
      for (const [key, model] of poll.changed) changed.set(key, model);
      for (const [key, model] of poll.unchanged) unchanged.set(key, model);
      const members = [...poll.changed.values(), ...poll.unchanged.values()].flatMap(({ config }) =>
        (config.ensembleScheduling?.step ?? []).map(({ modelName }) => modelName),
      );
      next = [...new Set(members)].filter((name) => !seen.has(name) && !this.#context.isBound(name));
    }
    return { changed, unchanged, gone: new Set(), problems };
  }

  #wanted(id: ModelId, repository: RepositorySource, explicit: boolean): Wanted {
    const previous = this.#context.known.get(keyOf(id));
    const open = () => repository.open(id.name);
    return { id, repository: repository.path, previous, explicit, open };
  }

  async #find(
    name: string,
    override: LoadOverride | undefined,
    problems: Map<string, TritonError>,
  ): Promise<Wanted[]> {
    const { repositories, namespacing, known, log } = this.#context;
    const explicit = override !== undefined;
    if (override?.directory !== undefined) {
      const { config, directory } = override;
      const { path } = directory;
      const id = { namespace: "", name };
      const previous = known.get(keyOf(id));
      const open = async () => ({ root: path, directory: path });
      return [{ id, repository: path, previous, explicit, config, override: directory, open }];
    }
    const targets: Wanted[] = [];
    for (const repository of repositories) {
      if (!(await repository.has(name))) continue;
      const id = { namespace: namespacing ? repository.path : "", name };
      targets.push({ ...this.#wanted(id, repository, explicit), config: override?.config });
    }
    if (!namespacing && targets.length > 1) {
      const problem = notUnique(name);
      log.error(problem.message);
      problems.set(name, problem);
      return [];
    }
    if (targets.length === 0) {
      const problem =
        repositories.flatMap((repository) => repository.problemOf(name) ?? [])[0] ?? notFound(name);
      log.error(problem.message);
      problems.set(name, problem);
    }
    return targets;
  }

  async #poll(
    targets: readonly Wanted[],
    gone: ReadonlySet<ModelKey>,
    problems: Map<string, TritonError>,
  ): Promise<Poll> {
    const changed = new Map<ModelKey, PolledModel>();
    const unchanged = new Map<ModelKey, PolledModel>();
    for (const target of targets) {
      const { id, previous } = target;
      const key = keyOf(id);
      try {
        if (this.#context.isBound(id.name)) {
          throw new TritonError(
            "ALREADY_EXISTS",
            `model '${id.name}' is already bound by the program: rename one of them`,
          );
        }
        const model = await pollModel({ ...target, ...(await target.open()) }, this.#context);
        if (model === previous) unchanged.set(key, { ...model, explicit: model.explicit || target.explicit });
        else changed.set(key, { ...model, explicit: target.explicit || (previous?.explicit ?? false) });
        this.#context.onProblem(id, undefined);
      } catch (thrown) {
        const problem = TritonError.from(thrown);
        problems.set(id.name, problem);
        this.#context.onProblem(id, problem);
        if (previous !== undefined) unchanged.set(key, previous);
      }
    }
    return { changed, unchanged, gone, problems };
  }
}

function inRepository(known: ReadonlyMap<ModelKey, PolledModel>, path: string): ModelKey[] {
  return [...known].filter(([, { repository }]) => repository === path).map(([key]) => key);
}

/** The files of a model, if the repository has it. */
async function placeIn(repository: RepositorySource, name: string): Promise<ModelPlace | undefined> {
  return (await repository.has(name)) ? repository.open(name).catch(() => undefined) : undefined;
}

function notFound(name: string): TritonError {
  const text = `failed to poll model '${name}': model not found in any model repository.`;
  return new TritonError("NOT_FOUND", text, { reason: "MODEL_FILES_NOT_FOUND" });
}

function notUnique(name: string): TritonError {
  return new TritonError(
    "INVALID_ARG",
    `failed to poll model '${name}': not unique across all model repositories`,
    { reason: "AMBIGUOUS_MODEL" },
  );
}
