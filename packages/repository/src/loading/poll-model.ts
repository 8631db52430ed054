import { join, relative, sep } from "node:path";
import type { Log } from "@tritonjs/core/extension";
import { exists, readSmallFile, SUBSTITUTED } from "@tritonjs/core/internal";
import { assertInside } from "@tritonjs/core/internal/worker";
import { errorFor, type ModelConfig, TritonError } from "@tritonjs/protocol";
import { emptyConfig } from "@tritonjs/protocol/config";
import { type ConfigSource, prepareConfig } from "../config/complete-config.js";
import { configFromJson } from "../config/config-from-json.js";
import { fieldNotes } from "../config/field-support.js";
import { readPrototxt } from "../config/prototxt.js";
import { withSubstitute } from "../config/substitutes.js";
import { assertGivenAgents } from "../directories/given-paths.js";
import type { ModelCopy } from "../directories/model-copy.js";
import {
  contents,
  isModified,
  type ModelTimes,
  type OverrideDirectory,
  readModelTimes,
  readVersionDirectories,
  subdirectories,
  versionsToLoad,
} from "../directories/model-directory.js";
import type { ModelPaths } from "../directories/repository-source.js";
import type { RepositoryOptions } from "../repository-options.js";
import type { ModelId } from "./dependencies.js";
import { type AgentChain, assertAgents, type RepositoryAgents } from "./repository-agents.js";

export interface PolledModel {
  readonly id: ModelId;
  readonly repository: string;
  readonly directory: string;
  /** The configuration before the model's file is read. */
  readonly config: ModelConfig;
  /** False for a model without a `config.pbtxt`. */
  readonly isWritten: boolean;
  /**
   * Set for a configuration that came over the network: what the model would have without it, if that can be read. Paths
   * in `config` are then checked whenever a version is made of it.
   */
  readonly cameOverNetwork?: { readonly operator: ModelConfig | undefined } | undefined;
  /** State of the directory that is in service; undefined to create every version again. */
  readonly times: ModelTimes | undefined;
  /** Whether the model was loaded by its own name, and not only as a part of an ensemble. */
  readonly explicit: boolean;
  readonly override: OverrideDirectory | undefined;
  /** The copy in the directory, for a model of a cloud. */
  readonly copy?: ModelCopy | undefined;
  readonly agents?: AgentChain | undefined;
}

export interface PollTarget {
  readonly id: ModelId;
  readonly repository: string;
  readonly previous: PolledModel | undefined;
  readonly explicit: boolean;
  /** A configuration in JSON instead of the one in the directory. */
  readonly config?: string | undefined;
  /** Whether `config` came over the network from a client that may not send files. */
  readonly fromNetwork?: boolean | undefined;
  readonly override?: OverrideDirectory | undefined;
  /** Files that failed to load before, and are not to be loaded again. */
  readonly failed?: ModelTimes | undefined;
  /** Locates the files. */
  open(): Promise<ModelPaths>;
}

/**
 * Reads the directory of a model.
 *
 * @param agents without them, no agent is called
 * @returns the model; the previous result itself when nothing has changed
 * @throws TritonError for a configuration that cannot be read, or that is rejected before the model's file is read.
 */
export async function pollModel(
  target: PollTarget,
  options: RepositoryOptions,
  log: Log,
  agents?: RepositoryAgents,
): Promise<PolledModel> {
  const { id, repository, previous, override, explicit } = target;
  const { root, directory, copy, isRenamed } = await target.open();
  await assertInside(root, directory);
  const configPath = await configPathOf(directory, options);
  const [configEntry = ""] = relative(directory, configPath).split(sep);
  const times = copy?.times(configEntry) ?? (await readModelTimes(directory, configPath));
  if (previous?.times !== undefined && target.config === undefined && !isModified(previous.times, times)) {
    return previous;
  }
  if (previous !== undefined && target.failed !== undefined && !isModified(target.failed, times))
    return previous;
  const laidOut =
    target.config === undefined ? await layOut(id.name, directory, configPath, options) : undefined;
  const place = laidOut?.directory ?? directory;
  const read =
    laidOut?.config ??
    (target.config === undefined
      ? await readConfig(configPath, root, isCompleted(options))
      : configFromRequest(target.config));
  const written = isRenamed && read !== undefined ? { ...read, name: id.name } : read;
  if (written !== undefined) await assertAgents(written, options);
  const isGiven = target.config !== undefined && target.fromNetwork === true;
  const onDisk = isGiven ? await readConfig(configPath, root, true).catch(() => undefined) : undefined;
  if (written !== undefined && isGiven) {
    await assertGivenAgents(id.name, written, onDisk, { repository, directory, versionDirectory: directory });
  }
  const configAt = async (location: string) =>
    location === place
      ? written
      : readConfig(await configPathOf(location, options), location, isCompleted(options));
  const chain =
    written &&
    (await agents?.load(id.name, place, written, async (at) => (await configAt(at)) ?? emptyConfig()));
  const location = chain?.location ?? place;
  try {
    const found = target.config === undefined ? await configAt(location) : written;
    if (found !== undefined && found !== written) await assertAgents(found, options);
    const used = found && withSubstitute(found, id.name, options.substitutes);
    if (used !== found) {
      log.warning(`model '${id.name}' has a substitute ${used!.parameters[SUBSTITUTED]!.stringValue}`);
    }
    const source = {
      modelName: id.name,
      versionFiles: await firstVersionFiles(location),
      autoComplete: isCompleted(options),
    };
    const config = prepareConfig(used, source);
    const notes = written === undefined ? [] : fieldNotes({ ...(used ?? written), name: id.name });
    for (const note of notes) log.warning(note);
    return {
      id,
      repository,
      directory: location,
      config,
      isWritten: written !== undefined,
      ...(isGiven && {
        cameOverNetwork: { operator: operatorConfig(onDisk, written!, source, options) },
      }),
      // The repository does not have the files of a load request. The next load reads the repository.
      times: override === undefined ? times : undefined,
      explicit,
      override,
      copy,
      agents: chain,
    };
  } catch (error) {
    await chain?.failed();
    throw error;
  }
}

/** Names of the models that an ensemble is made of, if its configuration can be read. */
export async function memberNames(
  { root, directory }: ModelPaths,
  config: string | undefined,
  options: RepositoryOptions,
): Promise<string[]> {
  try {
    const read =
      config === undefined
        ? await readConfig(await configPathOf(directory, options), root, true)
        : configFromRequest(config);
    return (read?.ensembleScheduling?.step ?? []).map(({ modelName }) => modelName);
  } catch {
    // The poll of the model reports the fault.
    return [];
  }
}

/** Warnings of missing versions. Further ones of the same policy say nothing new. */
const MOST_WARNINGS = 100;

/** Selects the versions that a model's policy chooses, ascending, with texts about what is missing or ignored. */
export async function selectVersions({ id, directory, config }: PolledModel) {
  const found = readVersionDirectories(await subdirectories(directory));
  const { versions, missing } = versionsToLoad(found.versions, config.versionPolicy ?? {});
  return {
    versions,
    ignored: found.ignored,
    missing: missing
      .slice(0, MOST_WARNINGS)
      .map(
        (version) =>
          `version ${version} is specified for model '${id.name}', but the version directory is not present`,
      ),
    problem:
      versions.length > 0
        ? undefined
        : `at least one version must be available under the version policy of model '${id.name}'`,
  };
}

export function isCompleted({ disableAutoCompleteConfig = false }: RepositoryOptions): boolean {
  return !disableAutoCompleteConfig;
}

/** A model in the layout of another server, as Triton would have it. Undefined for Triton's own. */
async function layOut(
  modelName: string,
  directory: string,
  configPath: string,
  { modelFormats = [] }: RepositoryOptions,
): Promise<{ readonly directory: string; readonly config: ModelConfig } | undefined> {
  if (modelFormats.length === 0 || (await exists(configPath))) return undefined;
  for (const format of modelFormats) {
    if (!(await exists(join(directory, format.file)))) continue;
    await assertInside(directory, join(directory, format.file));
    const { directory: made, config } = await format.layOut({ modelName, directory });
    return { directory: made, config: configFromJson(config as Readonly<Record<string, unknown>>) };
  }
  return undefined;
}

/** Path of the configuration of a model, which may be missing. */
export async function configPathOf(
  directory: string,
  { modelConfigName = "" }: RepositoryOptions,
): Promise<string> {
  if (modelConfigName !== "") {
    const custom = join(directory, "configs", `${modelConfigName}.pbtxt`);
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

/**
 * The configuration that a model would have without that of a load request: as written in its directory, with the
 * operator's substitutes. A model without one has that of a substitute at most.
 */
function operatorConfig(
  onDisk: ModelConfig | undefined,
  { backend, platform }: ModelConfig,
  source: ConfigSource,
  { substitutes }: RepositoryOptions,
): ModelConfig | undefined {
  try {
    const written = { ...(onDisk ?? { ...emptyConfig(), backend, platform }), name: source.modelName };
    return prepareConfig(withSubstitute(written, source.modelName, substitutes), source);
  } catch {
    return undefined;
  }
}

function configFromRequest(json: string): ModelConfig {
  try {
    return configFromJson(json);
  } catch (cause) {
    const { message } = TritonError.from(cause);
    throw errorFor("INVALID_LOAD_REQUEST", `Invalid config override: ${message}`, { cause });
  }
}

/** Sorted names in the first version's directory. They select the backend when the configuration does not. */
async function firstVersionFiles(directory: string): Promise<string[]> {
  const first = (await subdirectories(directory)).find(
    (name) => readVersionDirectories([name]).versions.length > 0,
  );
  return first === undefined ? [] : contents(join(directory, first));
}
