import { SAMPLE_TAKES_ONE } from "../callable/sample.js";
import { planInstances } from "../config/instances.js";
import type { ModelConfig } from "../config/model-config.js";
import { resolveConfig } from "../config/resolve-config.js";
import { validateConfig } from "../config/validate-config.js";
import { unknownKeys, validateOptions } from "../config/validate-options.js";
import { isBackend } from "../instance/backend.js";
import type { ExecutorFactory } from "../model/create-instances.js";
import type { EvictionListener } from "../request/sequence-info.js";
import type { AnyBindOptions } from "./bind-options.js";
import { bindError, identityProblems, labelsOf, specProblems } from "./binding-problems.js";
import { describeBackend } from "./describe-backend.js";
import { planExecutors } from "./plan-executors.js";

/** A binding that was found good. */
export interface Binding {
  readonly name: string;
  readonly version: number;
  readonly config: ModelConfig;
  readonly labels: ReadonlyMap<string, readonly string[]>;
  readonly createExecutor: ExecutorFactory;
  readonly onSequenceEvict?: EvictionListener | undefined;
}

const BIND_KEYS = [
  "modelName",
  "modelVersion",
  "inferFunc",
  "inputs",
  "outputs",
  "config",
  "modelConfig",
  "onSequenceEvict",
];

/**
 * Checks what `bind` was given and turns it into a configuration and a way to make instances.
 *
 * @throws TritonError INVALID_ARG with everything that is wrong, one fault a line.
 */
export function planBinding(
  options: AnyBindOptions,
  isTaken: (name: string, version: number) => boolean,
): Binding {
  const { modelName, modelVersion = 1, config = {}, modelConfig } = options;
  const problems = [
    ...unknownKeys("bind", options, BIND_KEYS),
    ...identityProblems(modelName, modelVersion, isTaken),
    ...validateOptions(config),
  ];
  const misshapen = [...specProblems("inputs", options.inputs), ...specProblems("outputs", options.outputs)];
  if (misshapen.length > 0) throw bindError(modelName, [...problems, ...misshapen]);
  const plan = planExecutors(options.inferFunc);
  problems.push(...plan.problems);
  if (plan.generates && config.decoupled === false) {
    problems.push(
      "a generator function answers with any number of responses: config.decoupled must not be false",
    );
  }
  const specs = isBackend(options.inferFunc)
    ? describeBackend(options.inferFunc, options.inputs, options.outputs, config)
    : {
        inputs: options.inputs ?? [],
        outputs: options.outputs ?? [],
        batchingByDefault: plan.batches && config.maxBatchSize !== 0,
        problems: [],
      };
  problems.push(...specs.problems);
  if (options.outputs?.some((output) => output.optional)) problems.push("outputs cannot be optional");
  const resolved = resolveConfig({
    modelName,
    inputs: specs.inputs,
    outputs: specs.outputs,
    options: config,
    decoupledByDefault: plan.generates,
    backend: plan.backend,
    platform: plan.platform,
    batchingByDefault: specs.batchingByDefault,
    defaultInstanceCount: plan.defaultInstanceCount,
    overrides: modelConfig,
  });
  problems.push(...validateConfig(resolved));
  if (!plan.batches && Math.max(resolved.maxBatchSize, config.maxBatchSize ?? 0) > 0) {
    problems.push(SAMPLE_TAKES_ONE);
  }
  const instances = planInstances(resolved).length;
  if (plan.exactInstanceCount !== undefined && plan.exactInstanceCount !== instances) {
    problems.push(
      `inferFunc is a list of ${plan.exactInstanceCount} functions, one for each instance, but config.instanceGroup ` +
        `asks for ${instances} instances`,
    );
  }
  if (problems.length > 0) {
    throw bindError(modelName, problems);
  }
  const labels = labelsOf(options.outputs);
  const { onSequenceEvict } = options;
  return {
    name: modelName,
    version: modelVersion,
    config: resolved,
    labels,
    createExecutor: plan.create,
    onSequenceEvict,
  };
}
