import { join } from "node:path";
import { type ModelConfig, type Tensor, TritonError } from "@tritonjs/protocol";
import { findBackend } from "../backends/backend-table.js";
import { AutoCompleteConfig } from "../config/complete/auto-complete-config.js";
import { completeConfig } from "../config/complete/complete-config.js";
import { completeInstanceGroups } from "../config/complete/instance-groups.js";
import { initialStates } from "../config/options/initial-states.js";
import type { Gpus } from "../config/placement/gpus.js";
import { instanceGroupProblems } from "../config/placement/instance-groups.js";
import { writePrototxt } from "../config/prototxt/write-prototxt.js";

import { dataFilesOf } from "../files/data-file.js";
import { assertInside } from "../files/path-containment.js";
import type { Backend, BackendFactory, ModelDescription } from "../instance/backend.js";
import type { ExecutorFactory } from "../model/create-instances.js";
import type { ModelVersion } from "../model/model-version.js";
import type { ModelVersionInit } from "../model/model-version-init.js";
import type { Log } from "../observe/log/log.js";

import { readLabels } from "./layout/read-labels.js";
import type { PolledModel } from "./poll-model.js";
import type { BackendConfig } from "./repository-options.js";

/** What is known of a version of a repository when it is made. */
export type RepositoryVersionInit = Pick<
  ModelVersionInit,
  | "name"
  | "namespace"
  | "version"
  | "config"
  | "labels"
  | "createExecutor"
  | "directory"
  | "held"
  | "initialStates"
>;

/** What making a version takes besides its model. */
export interface CreateContext {
  readonly backends: Readonly<Record<string, BackendFactory>>;
  readonly backendConfig: BackendConfig;
  readonly autoComplete: boolean;
  readonly log: Log;
  /** Numbers of the GPUs that instance groups may name; undefined where there are none to be used. */
  readonly gpus: Gpus;
  /** Makes a version that serves, of all that the server has. */
  readonly createModel: (init: RepositoryVersionInit) => ModelVersion;
  /** Names of classes by output of what the steps of an ensemble answer. */
  readonly memberLabels: (config: ModelConfig) => ReadonlyMap<string, readonly string[]>;
}

/** What making a version takes before it is a version that serves. */
export type PlanContext = Omit<CreateContext, "createModel">;

/**
 * Makes a version of a polled model; its instances load in the background.
 *
 * @throws TritonError for what its backend, its files or its tensors are refused for.
 */
export async function createVersion(
  polled: PolledModel,
  version: number,
  context: CreateContext,
): Promise<ModelVersion> {
  let backend: Backend | undefined;
  try {
    const init = await planVersion(polled, version, context, async (made, config) => {
      backend = made;
      return made.open?.(config);
    });
    context.log.verbose(1, `\n${writePrototxt(init.config)}`);
    return context.createModel(init);
  } catch (error) {
    await backend?.close?.();
    throw error;
  }
}

/**
 * Completes and checks the configuration of a version with what its backend says of the open model, and closes that again.
 *
 * @throws TritonError as {@link planVersion}
 */
export async function configOfOpenModel(
  polled: PolledModel,
  version: number,
  context: PlanContext,
): Promise<ModelConfig> {
  let backend: Backend | undefined;
  try {
    const { config } = await planVersion(polled, version, context, async (made, config) => {
      backend = made;
      return made.open?.(config);
    });
    return config;
  } finally {
    await backend?.close?.();
  }
}

/** Has a backend open its model to describe it; undefined for a backend that does not. */
type OpenModel = (backend: Backend, config: ModelConfig) => Promise<ModelDescription | undefined>;

/**
 * Reads all that a version of a polled model is made of, and starts nothing but what `open` opens.
 *
 * @param open told the configuration with complete instance groups
 * @throws TritonError for what its backend, its files or its tensors are refused for.
 */
export async function planVersion(
  polled: PolledModel,
  version: number,
  context: PlanContext,
  open?: OpenModel,
): Promise<RepositoryVersionInit> {
  const { id, directory } = polled;
  const made =
    polled.config.ensembleScheduling === undefined
      ? await fromBackend(polled, version, context, open)
      : { config: finish(polled, undefined, context), createExecutor: noExecutor };
  const labels = new Map(
    polled.config.ensembleScheduling === undefined ? [] : context.memberLabels(made.config),
  );
  for (const [output, names] of await readLabels(directory, made.config)) labels.set(output, names);
  const states = statesOf(directory, made.config);
  return { ...id, version, directory, held: true, labels, initialStates: states, ...made };
}

/** What sequences start with: from the folder `initial_state/` of the model, where the configuration names files. */
function statesOf(directory: string, config: ModelConfig): ReadonlyMap<string, Tensor> {
  const { states, problems } = initialStates(config, dataFilesOf(directory, "initial_state"));
  const [first] = problems;
  if (first !== undefined) {
    throw new TritonError(first.code, problems.map(({ message }) => message).join("\n"), {
      reason: first.reason,
    });
  }
  return states;
}

async function fromBackend(
  polled: PolledModel,
  version: number,
  context: PlanContext,
  open: OpenModel | undefined,
): Promise<{ config: ModelConfig; createExecutor: ExecutorFactory }> {
  const { id, directory, config } = polled;
  const factory = findBackend(config, context.backends);
  const versionDirectory = join(directory, String(version));
  await assertInside(directory, versionDirectory);
  const warn = (message: string) => context.log.warning(message);
  const settings = context.backendConfig[config.backend] ?? {};
  const { autoComplete } = context;
  const source = {
    name: id.name,
    version,
    directory,
    versionDirectory,
    config,
    autoComplete,
    settings,
    warn,
  };
  const backend = await factory(source);
  backend.checkConfig?.(config);
  const said = await whatItSays(backend, config, context, open);
  return {
    config: finish(polled, said, context),
    createExecutor: (executor) => backend.createExecutor(executor),
  };
}

/** What a model says of itself. */
async function whatItSays(
  backend: Backend,
  config: ModelConfig,
  { autoComplete, gpus }: PlanContext,
  open: OpenModel | undefined,
) {
  if (backend.completeConfig === undefined) {
    const placed = completeInstanceGroups(config, gpus);
    // What is wrong with the groups is told when all of the configuration is checked.
    const opens = instanceGroupProblems(placed, gpus).length === 0;
    return (opens ? await open?.(backend, placed) : undefined) ?? backend.describe();
  }
  const completed = new AutoCompleteConfig(config);
  if (autoComplete) await backend.completeConfig(completed);
  return completed;
}

function finish(
  { config, isWritten }: PolledModel,
  said: Parameters<typeof completeConfig>[1],
  { autoComplete, backendConfig, log, gpus }: PlanContext,
): ModelConfig {
  const size = Number(
    backendConfig[config.backend]?.["default-max-batch-size"] ??
      backendConfig[""]?.["default-max-batch-size"],
  );
  return completeConfig(config, said, {
    autoComplete,
    isWritten,
    gpus,
    warn: (text) => log.warning(text),
    ...(Number.isNaN(size) ? {} : { defaultMaxBatchSize: size }),
  });
}

const noExecutor: ExecutorFactory = ({ info }) => {
  throw new TritonError(
    "INTERNAL",
    `cannot create an instance of ensemble '${info.modelName}': only its steps have instances`,
  );
};
