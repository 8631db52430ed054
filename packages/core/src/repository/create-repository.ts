import type { ModelConfig } from "@tritonjs/protocol";
import type { Clock } from "../clock/clock.js";
import type { Gpus } from "../config/placement/gpus.js";
import type { ModelVersion } from "../model/model-version.js";
import type { ModelRegistry } from "../model/registry.js";
import type { Log } from "../observe/log/log.js";
import type { RepositoryVersionInit } from "./create-version.js";
import { ModelRepository } from "./model-repository.js";
import type { RepositoryOptions } from "./repository-options.js";

/** The parts of the server that a repository needs. */
export interface RepositoryParts {
  readonly options: RepositoryOptions;
  readonly registry: ModelRegistry;
  readonly log: Log;
  readonly clock: Clock;
  readonly gpus: Gpus;
}

/** Creates the repository for the options. Without `modelRepository` it is empty. */
export function createRepository(
  { options, registry, log, clock, gpus }: RepositoryParts,
  createModel: (own: RepositoryVersionInit) => ModelVersion,
): ModelRepository {
  return new ModelRepository({
    options,
    registry,
    log,
    clock,
    gpus,
    createModel,
    backends: options.backends ?? {},
    backendDirectory: options.backendDirectory,
    backendConfig: options.backendConfig ?? {},
    autoComplete: !(options.disableAutoCompleteConfig ?? false),
    memberLabels: (config) => memberLabels(config, registry),
  });
}

/** Class names of an ensemble's outputs, from the models that make the outputs. */
function memberLabels(config: ModelConfig, registry: ModelRegistry): Map<string, readonly string[]> {
  const labels = new Map<string, readonly string[]>();
  for (const step of config.ensembleScheduling?.step ?? []) {
    const version = step.modelVersion === -1 ? "" : String(step.modelVersion);
    const member = registry.findMember(step.modelName, version, step.modelNamespace);
    for (const [output, tensor] of Object.entries(step.outputMap)) {
      const names = member.labels.get(output);
      if (names !== undefined) labels.set(tensor, names);
    }
  }
  return labels;
}
