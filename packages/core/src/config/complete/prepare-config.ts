import { type ModelConfig, TritonError } from "@tritonjs/protocol";
import { normalizeConfig } from "../options/resolve-config.js";
import { defaultOptimization, emptyConfig } from "../schema/defaults.js";
import { validateModelConfig } from "../validation/validate-model-config.js";
import { validateModelIo } from "../validation/validate-model-io.js";
import { fillBackendFields } from "./backend-fields.js";

/** What a model's directory says about its configuration. */
export interface ConfigSource {
  /** Name of the directory, which is the model's name. */
  readonly modelName: string;
  /** Names of what is in the first version directory; those of directories may end in `/`. Empty without one. */
  readonly versionFiles: readonly string[];
  /** Whether the model may complete its configuration; without that its tensors must be complete as written. */
  readonly autoComplete: boolean;
  /** Names of the repository agents that there are. @default none */
  readonly agents?: readonly string[];
}

/**
 * Completes a configuration as far as that goes without opening the model, and checks it: what Triton does while it
 * reads a repository. Name, backend, platform, file name, version policy, preferred batch sizes and the like are
 * filled in; instance groups and tensors are not.
 *
 * @param written what config.pbtxt or the load request says; undefined without either
 * @throws TritonError INVALID_ARG with one line for each thing that is wrong, Triton's text of the first one first
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

/** Fills what follows from other fields, and what Triton shows of fields that nobody wrote. */
export function withDefaults(config: ModelConfig): ModelConfig {
  const normal: ModelConfig = {
    ...normalizeConfig(config),
    versionPolicy: config.versionPolicy ?? { latest: { numVersions: 1 } },
  };
  if (config.ensembleScheduling !== undefined) {
    // Its members decide whether it is decoupled, whatever is written.
    return { ...normal, modelTransactionPolicy: { decoupled: false } };
  }
  const defaults = defaultOptimization();
  const { inputPinnedMemory, outputPinnedMemory } = defaults;
  normal.optimization = { inputPinnedMemory, outputPinnedMemory, ...(config.optimization ?? defaults) };
  return normal;
}

/** What is wrong with the repository agents that a configuration names. */
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
