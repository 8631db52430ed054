import { type ModelConfig, type TensorSpec, TritonError } from "@tritonjs/protocol";
import {
  ENSEMBLE_OPTION_KEYS,
  ENSEMBLE_STEP_KEYS,
  type EnsembleStep,
} from "../config/options/ensemble-options.js";
import { resolveEnsemble } from "../config/options/resolve-ensemble.js";
import { keyList } from "../config/schema/key-list.js";
import { unknownKeys } from "../config/schema/unknown-keys.js";

import { validateConfig } from "../config/validation/validate-config.js";
import { checkMembers } from "../config/validation/validate-members.js";

import { ensembleCycle } from "../model/ensemble-cycle.js";
import type { MemberOf } from "../model/ensemble-members.js";
import type { BindEnsembleOptions } from "./bind-ensemble-options.js";
import { bindError, identityProblems, labelsOf, specProblems } from "./binding-problems.js";
import type { Binding } from "./plan-binding.js";

/** The models that are bound so far. */
export interface BoundModels {
  has(name: string, version: number): boolean;
  readonly memberOf: MemberOf;
}

const BIND_KEYS = keyList<BindEnsembleOptions<[], []>>({
  modelName: true,
  modelVersion: true,
  inputs: true,
  outputs: true,
  steps: true,
  config: true,
  modelConfig: true,
});

/**
 * Checks the options of `bindEnsemble`, also against members that are already bound.
 *
 * @throws TritonError INVALID_ARG that lists every problem, one per line.
 */
export function planEnsemble(
  options: BindEnsembleOptions<readonly TensorSpec[], readonly TensorSpec[]>,
  models: BoundModels,
): Binding {
  const { modelName, modelVersion = 1, inputs = [], outputs = [], steps = [], config = {} } = options;
  const problems = [
    ...unknownKeys("bindEnsemble", options, BIND_KEYS),
    ...identityProblems(modelName, modelVersion, (name, version) => models.has(name, version)),
    ...unknownKeys("config", config, ENSEMBLE_OPTION_KEYS),
  ];
  const misshapen = [
    ...specProblems("inputs", inputs),
    ...specProblems("outputs", outputs),
    ...stepProblems(steps),
  ];
  if (misshapen.length > 0) throw bindError(modelName, [...problems, ...misshapen]);
  if (outputs.some((output) => output.optional)) problems.push("outputs cannot be optional");
  if (config.batching === false && config.maxBatchSize) {
    problems.push(`config.maxBatchSize is ${config.maxBatchSize} but config.batching is false`);
  }
  const resolved = resolveEnsemble({
    modelName,
    inputs,
    outputs,
    steps,
    options: config,
    overrides: options.modelConfig,
  });
  problems.push(...validateConfig(resolved), ...memberProblems(resolved, modelVersion, models.memberOf));
  if (problems.length > 0) throw bindError(modelName, problems);
  return {
    name: modelName,
    version: modelVersion,
    config: resolved,
    labels: labelsOf(outputs),
    createExecutor: () => {
      throw new TritonError(
        "INTERNAL",
        `cannot create an instance of ensemble '${modelName}': only its steps have instances`,
      );
    },
  };
}

function stepProblems(steps: readonly EnsembleStep[]): string[] {
  if (!Array.isArray(steps)) return ["steps: expected a list of { modelName, inputMap, outputMap }"];
  return steps.flatMap((step: Partial<EnsembleStep> | null, i) => {
    if (typeof step !== "object" || step === null) return [`steps[${i}]: expected an object`];
    const problems = unknownKeys(`steps[${i}]`, step, ENSEMBLE_STEP_KEYS);
    if (typeof step.modelName !== "string") problems.push(`steps[${i}] has no modelName`);
    for (const key of ["inputMap", "outputMap"] as const) {
      if (typeof step[key] !== "object" || step[key] === null) problems.push(`steps[${i}] has no ${key}`);
    }
    return problems;
  });
}

/** Lists mismatches with the members that are bound. The other members are checked when they are bound. */
function memberProblems(config: ModelConfig, version: number, bound: MemberOf): readonly string[] {
  const itself = { name: config.name, version, config, state: "LOADING", reason: "" } as const;
  const memberOf: MemberOf = (step) => {
    const found = bound(step);
    if (step.modelName !== config.name) return found;
    const named = step.modelVersion === version;
    const highest = step.modelVersion === -1 && !((found?.version ?? 0) > version);
    return named || highest ? itself : found;
  };
  const cycle = ensembleCycle(config, memberOf);
  if (cycle !== undefined) return [`circular dependency between ensembles: ${cycle.join(" -> ")}`];
  return checkMembers(config, (step) => memberOf(step)?.config).problems;
}
