import { join, relative, sep } from "node:path";
import { type ModelConfig, TritonError } from "@tritonjs/protocol";
import { agentProblems, prepareConfig } from "../config/complete/prepare-config.js";
import { readPrototxt } from "../config/prototxt/read-prototxt.js";
import { configFromJson } from "../config/schema/config-from-json.js";
import { emptyConfig } from "../config/schema/defaults.js";
import { fieldNotes } from "../config/schema/field-support.js";

import { assertInside } from "../files/path-containment.js";
import { exists, readSmallFile } from "../files/read-small-file.js";
import type { Log } from "../observe/log/log.js";
import type { AgentChain } from "./agents/agent-chain.js";
import { BUILT_IN_AGENTS, type RepositoryAgents } from "./agents/repository-agents.js";
import type { ModelCopy } from "./cloud/model-copy.js";
import { contents, subdirectories } from "./layout/list-directory.js";
import { isModified, type ModelTimes, readModelTimes } from "./layout/model-times.js";
import type { OverrideDirectory } from "./layout/override-directory.js";
import { readVersionDirectories } from "./layout/versions-to-load.js";
import type { ModelId } from "./model-id.js";
import type { ModelPlace } from "./sources/repository-source.js";

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
export interface PollTarget {
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
export interface PollContext {
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
export async function memberNames(
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
