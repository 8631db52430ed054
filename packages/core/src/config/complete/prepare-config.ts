import { type ModelConfig, TritonError } from "@tritonjs/protocol";
import { normalizeConfig } from "../options/resolve-config.js";
import { defaultOptimization, emptyConfig } from "../schema/defaults.js";
import { validateModelConfig } from "../validation/validate-model-config.js";
import { validateModelIo } from "../validation/validate-model-io.js";
import { fillBackendFields } from "./backend-fields.js";

/** Facts about a model's directory that its configuration depends on. */
export interface ConfigSource {
  /** Name of the directory, which is the name of the model. */
  readonly modelName: string;
  /**
   * Names of the entries in the first version directory. Names of directories may end in `/`. Empty without such a
   * directory.
   */
  readonly versionFiles: readonly string[];
  /** Whether the model may complete its configuration. If not, its tensors must be complete as written. */
  readonly autoComplete: boolean;
  /** Names of the registered repository agents. @default none */
  readonly agents?: readonly string[];
}

/**
 * Completes a configuration as far as possible without opening the model, and checks it, as Triton does while it reads
 * a repository. It fills name, backend, platform, file name, version policy, preferred batch sizes and the like. It
 * does not fill instance groups and tensors.
 *
 * @param written configuration from config.pbtxt or the load request; undefined without either
 * @throws TritonError INVALID_ARG with one line for each problem, in Triton's order: the first line is the one that
 * Triton reports
 */
export function prepareConfig(written: ModelConfig | undefined, source: ConfigSource): ModelConfig {
  const config = structuredClone(written ?? emptyConfig());
  const problems = agentProblems(config, source.agents);
  if (problems.length > 0)
    throw new TritonError("INVALID_ARG", problems.join("\n"), { reason: "INVALID_CONFIG" });
  config.name ||= source.modelName;
  const prepared = withDefaults(fillBackendFields(config, source.versionFiles));
  problems.push(...validateModelConfig(prepared));
  if (!source.autoComplete) problems.push(...validateModelIo(prepared));
  if (prepared.name !== source.modelName) {
    problems.push(
      `unexpected directory name '${source.modelName}' for model '${prepared.name}', directory name must equal model name`,
    );
  }
  if (problems.length > 0)
    throw new TritonError("INVALID_ARG", problems.join("\n"), { reason: "INVALID_CONFIG" });
  return prepared;
}

/** Fills fields that follow from others, and fields that Triton shows with a default. */
export function withDefaults(config: ModelConfig): ModelConfig {
  const normal: ModelConfig = {
    ...normalizeConfig(config),
    versionPolicy: config.versionPolicy ?? { latest: { numVersions: 1 } },
  };
  if (config.ensembleScheduling !== undefined) {
    // Its members decide whether an ensemble is decoupled, whatever is written.
    return { ...normal, modelTransactionPolicy: { decoupled: false } };
  }
  const defaults = defaultOptimization();
  const { inputPinnedMemory, outputPinnedMemory } = defaults;
  normal.optimization = { inputPinnedMemory, outputPinnedMemory, ...(config.optimization ?? defaults) };
  return normal;
}

/** Lists repository agents that a configuration names but that are not registered. */
export function agentProblems(
  { modelRepositoryAgents }: ModelConfig,
  known: readonly string[] = [],
): string[] {
  return (modelRepositoryAgents?.agents ?? [])
    .filter(({ name }) => !known.includes(name))
    .map(
      ({ name }) =>
        `unable to find 'libtritonrepoagent_${name}.so' for repo agent '${name}': agents are functions here, and none has ` +
        `this name; register it with new Triton({ repositoryAgents: { ${name} } })`,
    );
}
