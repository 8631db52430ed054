import { stat } from "node:fs/promises";
import { join } from "node:path";
import { TritonError } from "../errors/triton-error.js";
import { exists } from "../files/read-small-file.js";
import { modelNames } from "./layout/list-directory.js";
import type { OverrideDirectory } from "./layout/override-directory.js";
import { keyOf, type ModelId, type ModelKey } from "./model-id.js";
import { type PollContext, type PolledModel, type PollTarget, pollModel } from "./poll-model.js";

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
  readonly repositories: readonly string[];
  readonly namespacing: boolean;
  /** Models as they were found the last time. */
  readonly known: ReadonlyMap<ModelKey, PolledModel>;
  /** Tells of models that are not of the repository. */
  readonly isBound: (name: string) => boolean;
  /** Told why a model could not be read; undefined once it can. */
  readonly onProblem: (id: ModelId, problem: TritonError | undefined) => void;
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
    for (const path of this.#context.repositories) {
      const found = await stat(path).catch(() => undefined);
      if (found === undefined) throw new TritonError("INTERNAL", `failed to stat file ${path}`);
      if (!found.isDirectory()) {
        throw new TritonError("INVALID_ARG", `repository path ${path} is not a valid directory`);
      }
    }
  }

  /** Looks at all models of all repositories. */
  async all(): Promise<Poll> {
    const { repositories, namespacing, known, log } = this.#context;
    const targets = new Map<ModelKey, PollTarget>();
    const gone = new Set(known.keys());
    const problems = new Map<string, TritonError>();
    for (const root of repositories) {
      const names = await modelNames(root).catch((error) => {
        log.error(`failed to poll model repository '${root}': ${TritonError.from(error).message}`);
        problems.set(root, TritonError.from(error));
        return undefined;
      });
      if (names === undefined) for (const key of inRepository(known, root)) gone.delete(key);
      for (const name of names ?? []) {
        const id = { namespace: namespacing ? root : "", name };
        const key = keyOf(id);
        gone.delete(key);
        if (targets.has(key)) problems.set(name, notUnique(name));
        else targets.set(key, this.#target(id, root, true));
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

  #target(id: ModelId, root: string, explicit: boolean): PollTarget {
    const previous = this.#context.known.get(keyOf(id));
    return { id, root, directory: join(root, id.name), previous, explicit };
  }

  async #find(
    name: string,
    override: LoadOverride | undefined,
    problems: Map<string, TritonError>,
  ): Promise<PollTarget[]> {
    const { repositories, namespacing, log } = this.#context;
    const explicit = override !== undefined;
    if (override?.directory !== undefined) {
      const { path } = override.directory;
      const target = this.#target({ namespace: "", name }, path, explicit);
      return [{ ...target, directory: path, config: override.config, override: override.directory }];
    }
    const targets: PollTarget[] = [];
    for (const root of repositories) {
      if (!(await exists(join(root, name)))) continue;
      const target = this.#target({ namespace: namespacing ? root : "", name }, root, explicit);
      targets.push({ ...target, config: override?.config });
    }
    if (!namespacing && targets.length > 1) {
      const problem = notUnique(name);
      log.error(problem.message);
      problems.set(name, problem);
      return [];
    }
    if (targets.length === 0) {
      const text = `failed to poll model '${name}': model not found in any model repository.`;
      log.error(text);
      problems.set(name, new TritonError("NOT_FOUND", text));
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
    for (const target of targets) {
      const { id, previous } = target;
      const key = keyOf(id);
      try {
        if (this.#context.isBound(id.name)) {
          throw new TritonError("ALREADY_EXISTS", `model '${id.name}' is bound by the program already`);
        }
        const model = await pollModel(target, this.#context);
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

function inRepository(known: ReadonlyMap<ModelKey, PolledModel>, root: string): ModelKey[] {
  return [...known].filter(([, { directory }]) => directory.startsWith(root)).map(([key]) => key);
}

function notUnique(name: string): TritonError {
  return new TritonError(
    "INVALID_ARG",
    `failed to poll model '${name}': not unique across all model repositories`,
  );
}
