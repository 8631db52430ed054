import { join } from "node:path";
import { type ModelConfig, type Tensor, TritonError } from "@tritonjs/protocol";
import { findBackend } from "../backends/find-backend.js";
import { AutoCompleteConfig } from "../config/auto-complete-config.js";
import { completeConfig } from "../config/complete-config.js";
import type { Gpus } from "../config/gpus.js";
import { completeInstanceGroups, instanceGroupProblems } from "../config/instance-groups.js";
import { writePrototxt } from "../config/prototxt.js";
import { initialStates } from "../config/sequence-batching.js";
import type { Backend, BackendFactory, ModelDescription } from "../instance/backend.js";
import type { ExecutorFactory, ModelPlan } from "../model/model-server.js";
import type { ModelVersion } from "../model/model-version.js";
import type { Log } from "../observe/log.js";
import { assertInside, dataFilesOf, isInside, readSmallFile } from "../system/files.js";
import type { BackendConfig } from "./repository-options.js";
import type { PolledModel } from "./repository-poller.js";

/** The context for creating a version. */
export interface CreateContext {
  readonly backends: Readonly<Record<string, BackendFactory>>;
  /** Directory of backends that are programs; undefined for none. */
  readonly backendDirectory: string | undefined;
  readonly backendConfig: BackendConfig;
  readonly autoComplete: boolean;
  readonly log: Log;
  /** Numbers of the GPUs that instance groups may name; undefined when none can be used. */
  readonly gpus: Gpus;
  /** Creates a version that serves, with the parts of the server. */
  readonly createModel: (init: ModelPlan) => ModelVersion;
  /** Class names by output, from the models of an ensemble's steps. */
  readonly memberLabels: (config: ModelConfig) => ReadonlyMap<string, readonly string[]>;
}

/** The context for planning a version. */
export type PlanContext = Omit<CreateContext, "createModel">;

/**
 * Creates a version of a polled model. Its instances load in the background.
 *
 * @throws TritonError for faults of its backend, its files or its tensors.
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
 * Opens a version's model, completes and checks the configuration with its description, and closes the model again.
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

/** Opens a model with its backend to describe it. Returns undefined for a backend that does not open models. */
type OpenModel = (backend: Backend, config: ModelConfig) => Promise<ModelDescription | undefined>;

/**
 * Reads everything that a version of a polled model is made of. Starts only what `open` opens.
 *
 * @param open gets the configuration with complete instance groups
 * @throws TritonError for faults of its backend, its files or its tensors.
 */
export async function planVersion(
  polled: PolledModel,
  version: number,
  context: PlanContext,
  open?: OpenModel,
): Promise<ModelPlan> {
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

/**
 * Reads the initial states of sequences from the model's folder `initial_state/`, where the configuration names files.
 */
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
  const { id, directory } = polled;
  const { factory, config, inherits } = await findBackend(
    { config: polled.config, directory, version },
    context,
  );
  const versionDirectory = join(directory, String(version));
  await assertInside(directory, versionDirectory);
  const warn = (message: string) => context.log.warning(message);
  const { backendConfig } = context;
  const inherited = inherits === undefined ? {} : backendConfig[inherits];
  const settings = { ...inherited, ...backendConfig[config.backend] };
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
    config: finish({ ...polled, config }, said, context),
    createExecutor: (executor) =>
      backend.createExecutor({ ...executor, hosting: { ...backend.hosting, ...executor.hosting } }),
  };
}

/** The model's description of itself. */
async function whatItSays(
  backend: Backend,
  config: ModelConfig,
  { autoComplete, gpus }: PlanContext,
  open: OpenModel | undefined,
) {
  if (backend.completeConfig === undefined) {
    const placed = completeInstanceGroups(config, gpus);
    // Faults of the groups are reported by the check of the whole configuration.
    const opens = instanceGroupProblems(placed, gpus).length === 0;
    return (opens ? await open?.(backend, placed) : undefined) ?? backend.describe();
  }
  // Tells of the backend, which is closed if the version cannot be created.
  if (backend.open === undefined) await open?.(backend, config);
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

/**
 * Reads the class names of each output that has a label file, one name on each line.
 *
 * @throws TritonError INVALID_ARG for a file outside the model's directory, INTERNAL for a file that cannot be read.
 */
async function readLabels(directory: string, config: ModelConfig): Promise<Map<string, readonly string[]>> {
  const labels = new Map<string, readonly string[]>();
  for (const { name, labelFilename } of config.output) {
    if (labelFilename === "") continue;
    const path = join(directory, labelFilename);
    if (!isInside(directory, path)) {
      throw new TritonError(
        "INVALID_ARG",
        `label_filename of output '${name}' of model '${config.name}': expected a path inside the model's directory, ` +
          `got '${labelFilename}'`,
        { reason: "PATH_NOT_ALLOWED" },
      );
    }
    await assertInside(directory, path);
    const text = new TextDecoder().decode(await readSmallFile(path));
    labels.set(name, text.replace(/\r?\n$/, "").split(/\r?\n/));
  }
  return labels;
}
