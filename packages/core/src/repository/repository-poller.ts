import { join, relative, sep } from "node:path";
import { type ModelConfig, TritonError } from "@tritonjs/protocol";
import { agentProblems, prepareConfig } from "../config/complete-config.js";
import { configFromJson } from "../config/config-json.js";
import { emptyConfig } from "../config/defaults.js";
import { fieldNotes } from "../config/field-support.js";
import { readPrototxt } from "../config/prototxt.js";
import type { Log } from "../observe/log.js";
import { assertInside, exists, readSmallFile } from "../system/files.js";
import { keyOf, type ModelId, type ModelKey } from "./dependencies.js";
import type { ModelCopy } from "./model-copy.js";
import {
  contents,
  isModified,
  type ModelTimes,
  type OverrideDirectory,
  readModelTimes,
  readVersionDirectories,
  subdirectories,
} from "./model-directory.js";
import { type AgentChain, BUILT_IN_AGENTS, type RepositoryAgents } from "./repository-agents.js";
import type { ModelPlace, RepositorySource } from "./repository-source.js";

/** The contents of a load request. */
interface LoadOverride {
  /** A configuration in JSON, instead of the one in the model's directory. */
  readonly config?: string | undefined;
  /** The directory of the model, instead of the one in a repository. */
  readonly directory?: OverrideDirectory | undefined;
}

/** The result of polling directories. */
export interface Poll {
  readonly changed: ReadonlyMap<ModelKey, PolledModel>;
  readonly unchanged: ReadonlyMap<ModelKey, PolledModel>;
  /** Models that are missing, or that two repositories have. */
  readonly gone: ReadonlySet<ModelKey>;
  /** Why models cannot be polled, by name. */
  readonly problems: ReadonlyMap<string, TritonError>;
}

/** The parts of the server that the poller needs. */
interface PollerContext extends PollContext {
  readonly repositories: readonly RepositorySource[];
  readonly namespacing: boolean;
  /** Models as they were at the last poll. */
  readonly known: ReadonlyMap<ModelKey, PolledModel>;
  /** Whether a model is bound by the program rather than in the repository. */
  readonly isBound: (name: string) => boolean;
  /** Called with the reason when a model cannot be read, and with undefined once it can. */
  readonly onProblem: (id: ModelId, problem: TritonError | undefined) => void;
}

/** A model to poll, before its files are located. */
interface Wanted extends Omit<PollTarget, keyof ModelPlace> {
  open(): Promise<ModelPlace>;
}

/** Polls the directories of models. */
export class RepositoryPoller {
  readonly #context: PollerContext;

  constructor(context: PollerContext) {
    this.#context = context;
  }

  /**
   * Checks that all repositories exist.
   *
   * @throws TritonError INTERNAL for a repository that does not exist, INVALID_ARG for a path that is not a directory
   */
  async checkRepositories(): Promise<void> {
    for (const repository of this.#context.repositories) await repository.check();
  }

  /** Copies remote models to this machine: all models, or the given ones and all members of ensembles among them. */
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

  /** Polls all models of all repositories. */
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

/** A model as its directory was at the last poll. */
export interface PolledModel {
  readonly id: ModelId;
  /** Path of its repository. */
  readonly repository: string;
  readonly directory: string;
  /** The configuration before the model's file is read. */
  readonly config: ModelConfig;
  /** False for a model without a `config.pbtxt`. */
  readonly isWritten: boolean;
  /**
   * State of the directory that is in service; undefined when there is none, or when every version must be created
   * again.
   */
  readonly times: ModelTimes | undefined;
  /** Whether the model was loaded by its own name, and not only as a part of an ensemble. */
  readonly explicit: boolean;
  /** The directory of the files that came with the load request. */
  readonly override: OverrideDirectory | undefined;
  /** The copy in the directory, for a model of a cloud. */
  readonly copy?: ModelCopy | undefined;
  /** The model's repository agents. */
  readonly agents?: AgentChain | undefined;
}

/** A model to poll. */
interface PollTarget {
  readonly id: ModelId;
  /** Path of the repository. */
  readonly repository: string;
  readonly directory: string;
  /** Directory that links may not lead out of. */
  readonly root: string;
  /** The result of the previous poll. */
  readonly previous: PolledModel | undefined;
  readonly explicit: boolean;
  /** A configuration in JSON instead of the one in the directory. */
  readonly config?: string | undefined;
  readonly override?: OverrideDirectory | undefined;
  readonly copy?: ModelCopy | undefined;
  /** Whether the model has another name than its directory. */
  readonly isRenamed?: boolean;
}

/** The context of a poll. */
interface PollContext {
  readonly modelConfigName: string | undefined;
  readonly autoComplete: boolean;
  readonly log: Log;
  /** Agents of the repository. Without them no agent is called. */
  readonly agents?: RepositoryAgents | undefined;
}

/**
 * Reads the directory of a model.
 *
 * @returns the model; the previous result itself when nothing has changed
 * @throws TritonError for a configuration that cannot be read, or that is rejected before the model's file is read.
 */
export async function pollModel(target: PollTarget, context: PollContext): Promise<PolledModel> {
  const { id, repository, directory, previous, override, explicit, copy } = target;
  await assertInside(target.root, directory);
  const configPath = await configPathOf(directory, context.modelConfigName);
  const times = await timesAt(directory, configPath, copy);
  if (previous?.times !== undefined && target.config === undefined && !isModified(previous.times, times)) {
    return previous;
  }
  const read =
    target.config === undefined
      ? await readConfig(configPath, target.root, context.autoComplete)
      : overrideOf(target.config);
  const written = target.isRenamed && read !== undefined ? { ...read, name: id.name } : read;
  const agents = written && (await loadAgents(target, written, context));
  const location = agents?.location ?? directory;
  const config = await prepareAt(location, target, written, context).catch(async (error) => {
    await agents?.failed();
    throw error;
  });
  for (const note of written === undefined ? [] : fieldNotes({ ...written, name: id.name }))
    context.log.warning(note);
  // The repository does not have the files of a load request. The next load reads the repository.
  const current = override === undefined ? times : undefined;
  const isWritten = written !== undefined;
  const made = { id, repository, directory: location, config, isWritten };
  return { ...made, times: current, explicit, override, copy, agents };
}

/** State of the copied model, or of the directory itself. */
async function timesAt(
  directory: string,
  configPath: string,
  copy: ModelCopy | undefined,
): Promise<ModelTimes> {
  const [configEntry = ""] = relative(directory, configPath).split(sep);
  return copy?.times(configEntry) ?? (await readModelTimes(directory, configPath));
}

/**
 * Names of the models that an ensemble is made of, if its configuration can be read; none for other models.
 *
 * @param config in JSON, instead of the one in the directory
 */
async function memberNames(
  { root, directory }: ModelPlace,
  config: string | undefined,
  modelConfigName: string | undefined,
): Promise<string[]> {
  try {
    const read =
      config === undefined
        ? await readConfig(await configPathOf(directory, modelConfigName), root, true)
        : overrideOf(config);
    return (read?.ensembleScheduling?.step ?? []).map(({ modelName }) => modelName);
  } catch {
    // The poll of the model reports the fault.
    return [];
  }
}

/** Asks the agents of a model to load it. */
async function loadAgents(
  { id, directory }: PollTarget,
  written: ModelConfig,
  { agents, autoComplete, modelConfigName }: PollContext,
): Promise<AgentChain | undefined> {
  if (agents === undefined) return undefined;
  const problems = agentProblems(written, agents.names);
  if (problems.length > 0)
    throw new TritonError("INVALID_ARG", problems.join("\n"), { reason: "INVALID_CONFIG" });
  return agents.load(id.name, directory, written, async (location) => {
    if (location === directory) return written;
    const path = await configPathOf(location, modelConfigName);
    return (await readConfig(path, location, autoComplete)) ?? emptyConfig();
  });
}

/** Reads the configuration of a model at the location that its agents chose. */
async function prepareAt(
  location: string,
  { id, directory, config }: PollTarget,
  written: ModelConfig | undefined,
  { agents, autoComplete, modelConfigName }: PollContext,
): Promise<ModelConfig> {
  const isMoved = location !== directory && config === undefined;
  const there = isMoved
    ? await readConfig(await configPathOf(location, modelConfigName), location, autoComplete)
    : written;
  return prepareConfig(there, {
    modelName: id.name,
    versionFiles: await firstVersionFiles(location),
    autoComplete,
    agents: agents?.names ?? Object.keys(BUILT_IN_AGENTS),
  });
}

/** Path of the configuration of a model, which may be missing. */
export async function configPathOf(directory: string, configName: string | undefined): Promise<string> {
  if (configName !== undefined && configName !== "") {
    const custom = join(directory, "configs", `${configName}.pbtxt`);
    if (await exists(custom)) return custom;
  }
  return join(directory, "config.pbtxt");
}

async function readConfig(
  path: string,
  root: string,
  mayBeMissing: boolean,
): Promise<ModelConfig | undefined> {
  if (mayBeMissing && !(await exists(path))) return undefined;
  await assertInside(root, path);
  return readPrototxt(await readSmallFile(path), path);
}

function overrideOf(json: string): ModelConfig {
  try {
    return configFromJson(json);
  } catch (cause) {
    const { message } = TritonError.from(cause);
    throw new TritonError("INVALID_ARG", `Invalid config override: ${message}`, {
      reason: "INVALID_LOAD_REQUEST",
      cause,
    });
  }
}

/** Sorted names in the first version's directory. They select the backend when the configuration does not. */
async function firstVersionFiles(directory: string): Promise<string[]> {
  const first = (await subdirectories(directory)).find(
    (name) => readVersionDirectories([name]).versions.length > 0,
  );
  return first === undefined ? [] : contents(join(directory, first));
}
