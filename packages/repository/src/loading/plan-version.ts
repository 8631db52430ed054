import { join } from "node:path";
import {
  AutoCompleteConfig,
  type Backend,
  type ModelDescription,
  type ParameterTable,
} from "@tritonjs/core/backend";
import {
  completeInstanceGroups,
  type ExecutorFactory,
  type Gpus,
  type HostPolicies,
  hostPolicyOf,
  initialStates,
  instanceGroupProblems,
  type Log,
  type ModelPlan,
  noExecutor,
  padsOfConfig,
  planInstances,
} from "@tritonjs/core/extension";
import { assertInRepository, dataFilesOf, readSmallFile } from "@tritonjs/core/internal";
import { isInside } from "@tritonjs/core/internal/worker";
import { type DescribedTensor, errorFor, type ModelConfig, TritonError } from "@tritonjs/protocol";
import { findBackend } from "../backends/find-backend.js";
import { completeConfig, TRITON_DEFAULT_MAX_BATCH_SIZE } from "../config/complete-config.js";
import { assertGivenPaths } from "../directories/given-paths.js";
import type { RepositoryOptions } from "../repository-options.js";
import { isCompleted, type PolledModel } from "./poll-model.js";

export interface PlanServer {
  readonly log: Log;
  readonly gpus: Gpus;
  readonly hostPolicies?: HostPolicies;
  /** Parameters of configurations that extensions read. */
  parameters?(): ParameterTable;
}

interface PlannedVersion {
  readonly plan: ModelPlan;
  /** Closes its model, if the plan opened it. */
  close(): Promise<void>;
}

/**
 * Reads everything that a version of a polled model is made of.
 *
 * @param opens whether the backend opens the model, where it can, to describe it. Otherwise nothing starts
 * @throws TritonError for faults of its backend, its files or its tensors. The model is closed again.
 */
export async function planVersion(
  polled: PolledModel,
  version: number,
  options: RepositoryOptions,
  server: PlanServer,
  opens: boolean,
): Promise<PlannedVersion> {
  const { id, directory } = polled;
  let opened: Backend | undefined;
  const close = async () => opened?.close?.();
  const open: OpenModel = async (backend, config) => {
    if (!opens) return undefined;
    opened = backend;
    const [first] = planInstances(config);
    return backend.open?.(config, first && hostPolicyOf(first, server.hostPolicies ?? {}));
  };
  try {
    const made: FromBackend =
      polled.config.ensembleScheduling === undefined
        ? await fromBackend(polled, version, options, server, open)
        : await fromSteps(polled, version, options, server);
    const { labelled = [], ...executed } = made;
    const labels = new Map(labelled.flatMap(({ name, labels }) => (labels ? [[name, labels]] : [])));
    for (const [name, written] of await readLabels(directory, made.config)) labels.set(name, written);
    const variableLength = padsOfConfig(made.config);
    const { states, problems } = initialStates(made.config, dataFilesOf(directory, "initial_state"));
    const [first] = problems;
    if (first !== undefined) {
      const text = problems.map(({ message }) => message).join("\n");
      throw new TritonError(first.code, text, { reason: first.reason });
    }
    return {
      plan: {
        ...id,
        version,
        directory,
        held: true,
        labels,
        initialStates: states,
        variableLength,
        ...executed,
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Makes an ensemble, which has no backend. */
async function fromSteps(
  polled: PolledModel,
  version: number,
  options: RepositoryOptions,
  server: PlanServer,
): Promise<FromBackend> {
  const { repository, directory, cameOverNetwork } = polled;
  if (cameOverNetwork !== undefined) {
    const versionDirectory = join(directory, String(version));
    await assertGivenPaths(
      polled.config,
      cameOverNetwork.operator,
      {},
      { repository, directory, versionDirectory },
      server.parameters?.(),
    );
  }
  return { config: completedConfig(polled, undefined, options, server), createExecutor: noExecutor };
}

/** Opens a model with its backend to describe it. Returns undefined for a backend that does not open models. */
type OpenModel = (backend: Backend, config: ModelConfig) => Promise<ModelDescription | undefined>;

interface FromBackend {
  readonly config: ModelConfig;
  readonly createExecutor: ExecutorFactory;
  /** Outputs as the model file describes them, perhaps with names of classes. */
  readonly labelled?: readonly DescribedTensor[];
}

async function fromBackend(
  polled: PolledModel,
  version: number,
  options: RepositoryOptions,
  server: PlanServer,
  open: OpenModel,
): Promise<FromBackend> {
  const { id, directory } = polled;
  const { factory, config, inherits } = await findBackend(polled.config, directory, version, options);
  const versionDirectory = join(directory, String(version));
  const { backendConfig = {} } = options;
  const settings = {
    ...(inherits !== undefined && backendConfig[inherits]),
    ...backendConfig[config.backend],
  };
  await assertInRepository(directory, versionDirectory, settings);
  if (polled.cameOverNetwork !== undefined) {
    const { operator } = polled.cameOverNetwork;
    const own = operator && (await findBackend(operator, directory, version, options).catch(() => undefined));
    const places = { repository: polled.repository, directory, versionDirectory, settings };
    await assertGivenPaths(polled.config, own?.config, factory, places, server.parameters?.());
  }
  const backend = await factory({
    name: id.name,
    version,
    directory,
    versionDirectory,
    config,
    autoComplete: isCompleted(options),
    settings,
    otherParameters: server.parameters?.() ?? {},
    warn: (message) => server.log.warning(message),
  });
  backend.checkConfig?.(config);
  const description = await describeModel(backend, config, options, server, open);
  return {
    config: completedConfig({ ...polled, config }, description, options, server),
    createExecutor: (executor) =>
      backend.createExecutor({ ...executor, hosting: { ...backend.hosting, ...executor.hosting } }),
    ...(description !== undefined && "outputs" in description && { labelled: description.outputs }),
  };
}

async function describeModel(
  backend: Backend,
  config: ModelConfig,
  options: RepositoryOptions,
  { gpus }: PlanServer,
  open: OpenModel,
) {
  if (backend.completeConfig === undefined) {
    const placed = completeInstanceGroups(config, gpus);
    // Faults of the groups are reported by the check of the whole configuration.
    const opens = instanceGroupProblems(placed, gpus).length === 0;
    return (opens ? await open(backend, placed) : undefined) ?? backend.describe();
  }
  // Tells of the backend, which is closed if the version cannot be created.
  if (backend.open === undefined) await open(backend, config);
  const completed = new AutoCompleteConfig(config);
  if (isCompleted(options)) await backend.completeConfig(completed);
  return completed;
}

function completedConfig(
  { config, isWritten }: PolledModel,
  description: Parameters<typeof completeConfig>[1],
  options: RepositoryOptions,
  { log, gpus }: PlanServer,
): ModelConfig {
  const { backendConfig = {} } = options;
  const size = Number(
    backendConfig[config.backend]?.["default-max-batch-size"] ??
      backendConfig[""]?.["default-max-batch-size"],
  );
  const isDefault = Number.isNaN(size);
  const what = isDefault ? "Adding default backend config setting" : "Found overwritten default setting";
  log
    .of("backend_model")
    .verbose(1, `${what}: default-max-batch-size,${isDefault ? TRITON_DEFAULT_MAX_BATCH_SIZE : size}`, {
      model: config.name,
    });
  return completeConfig(config, description, {
    autoComplete: isCompleted(options),
    isWritten,
    gpus,
    warn: (text) => log.warning(text),
    ...(isDefault ? {} : { defaultMaxBatchSize: size }),
  });
}

/** Class names of an output. The largest models tell some ten thousand classes apart. */
const MOST_LABELS = 2 ** 20;

/** Reads the class names of each output that has a label file inside the directory, one name on each line. */
async function readLabels(directory: string, config: ModelConfig): Promise<Map<string, readonly string[]>> {
  const labels = new Map<string, readonly string[]>();
  for (const { name, labelFilename } of config.output) {
    if (labelFilename === "") continue;
    const path = join(directory, labelFilename);
    if (!isInside(directory, path)) {
      throw errorFor(
        "PATH_NOT_ALLOWED",
        `label_filename of output '${name}' of model '${config.name}': expected a path inside the model's directory, ` +
          `got '${labelFilename}'`,
      );
    }
    await assertInRepository(directory, path);
    const text = new TextDecoder().decode(await readSmallFile(path));
    const lines = text.replace(/\r?\n$/, "").split(/\r?\n/, MOST_LABELS + 1);
    if (lines.length > MOST_LABELS)
      throw errorFor("INVALID_MODEL", `cannot read ${path}: expected at most ${MOST_LABELS} lines, got more`);
    labels.set(name, lines);
  }
  return labels;
}
