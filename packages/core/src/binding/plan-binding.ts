import type { ModelConfig, Tensor } from "@tritonjs/protocol";
import { planVariableLength, type VariableLength } from "../batch/variable-length.js";
import { SAMPLE_TAKES_ONE } from "../callable/sample.js";
import { initialStates } from "../config/options/initial-states.js";
import { MODEL_OPTION_KEYS } from "../config/options/model-options.js";
import { resolveConfig } from "../config/options/resolve-config.js";
import { sequenceBatching } from "../config/options/sequence-options.js";
import { stateFilesOf } from "../config/options/sequence-state-options.js";
import type { Gpus } from "../config/placement/gpus.js";
import { keyList } from "../config/schema/key-list.js";
import { unknownKeys } from "../config/schema/unknown-keys.js";
import { validateConfig } from "../config/validation/validate-config.js";
import { validateOptions } from "../config/validation/validate-options.js";
import { isBackend } from "../instance/backend.js";
import type { ExecutorFactory } from "../model/create-instances.js";
import type { EvictionListener } from "../request/sequence-info.js";

import type { AnyBindOptions } from "./bind-options.js";
import {
  bindError,
  dataTypeProblems,
  identityProblems,
  isDataTypeProblem,
  labelsOf,
  specProblems,
} from "./binding-problems.js";
import { type BackendSpecs, describeBackend } from "./describe-backend.js";
import { instanceProblems } from "./instance-changes.js";
import { planExecutors } from "./plan-executors.js";
import { planStepwise } from "./plan-stepwise.js";

/** A binding that has passed all checks. */
export interface Binding {
  readonly name: string;
  readonly version: number;
  readonly config: ModelConfig;
  readonly labels: ReadonlyMap<string, readonly string[]>;
  readonly createExecutor: ExecutorFactory;
  /** Lists problems with other instance groups for the model. */
  readonly instanceProblems?: (config: ModelConfig) => readonly string[];
  readonly strict?: boolean | undefined;
  /** Whether requests with different sets of optional inputs may share a batch. */
  readonly mixedInputs?: boolean;
  readonly onSequenceEvict?: EvictionListener | undefined;
  /** How requests of different lengths share batches. */
  readonly variableLength?: VariableLength | undefined;
  /** Initial states of sequences, for a model with implicit state. */
  readonly initialStates?: ReadonlyMap<string, Tensor>;
}

const BIND_KEYS = keyList<AnyBindOptions>({
  modelName: true,
  modelVersion: true,
  inferFunc: true,
  inputs: true,
  outputs: true,
  config: true,
  modelConfig: true,
  strict: true,
  onSequenceEvict: true,
  stateFiles: true,
});

/**
 * Checks the options of `bind` and turns them into a configuration and a way to make instances.
 *
 * @throws TritonError INVALID_ARG that lists every problem, one per line.
 */
export function planBinding(
  options: AnyBindOptions,
  isTaken: (name: string, version: number) => boolean,
  gpus: Gpus,
): Binding {
  const { modelName, modelVersion = 1, config = {}, modelConfig } = options;
  const problems = [
    ...unknownKeys("bind", options, BIND_KEYS, { config: MODEL_OPTION_KEYS }),
    ...identityProblems(modelName, modelVersion, isTaken),
    ...validateOptions(config),
  ];
  const misshapen = [...specProblems("inputs", options.inputs), ...specProblems("outputs", options.outputs)];
  if (misshapen.length > 0) throw bindError(modelName, [...problems, ...misshapen]);
  const plan = planExecutors(options);
  const stepwise = planStepwise(options.inferFunc, config);
  problems.push(...plan.problems);
  if (plan.generates && config.decoupled === false) {
    problems.push(
      "config.decoupled is false, but inferFunc is a generator, which sends any number of responses: leave config.decoupled out",
    );
  }
  const sequences = modelConfig?.sequenceBatching ?? (config.sequence && sequenceBatching(config.sequence));
  const specs: BackendSpecs = isBackend(options.inferFunc)
    ? describeBackend(options.inferFunc, options.inputs, options.outputs, config, sequences, modelConfig)
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
    options: {
      ...(specs.maxBatchSize ? { maxBatchSize: specs.maxBatchSize } : {}),
      ...(stepwise?.options ?? config),
    },
    decoupledByDefault: plan.generates || stepwise !== undefined || (specs.decoupled ?? false),
    backend: plan.backend,
    platform: plan.platform,
    batchingByDefault: specs.batchingByDefault,
    defaultInstanceCount: plan.defaultInstanceCount,
    gpus,
    overrides: modelConfig,
  });
  const unknownTypes = [
    ...dataTypeProblems("inputs", options.inputs),
    ...dataTypeProblems("outputs", options.outputs),
  ];
  const faults = validateConfig(resolved, gpus);
  // The specification is what the user wrote, not the configuration that is made of it.
  problems.push(
    ...unknownTypes,
    ...faults.filter((one) => unknownTypes.length === 0 || !isDataTypeProblem(one)),
  );
  const batcher = config.batcher || undefined;
  const variable = planVariableLength(batcher ?? {}, specs.inputs, specs.outputs, resolved);
  problems.push(...variable.problems);
  if (typeof batcher?.pad === "function" && plan.runsModule) {
    problems.push(
      "config.batcher.pad is a function, which cannot be sent to the thread of a module: expected values by input name",
    );
  }
  const readFile = stateFilesOf(config.sequence?.states ?? []);
  const initial = initialStates(resolved, (file) => options.stateFiles?.[file] ?? readFile(file));
  problems.push(...initial.problems.map(({ message }) => message));
  problems.push(...plan.problemsWith(resolved), ...(stepwise?.problemsWith(resolved) ?? []));
  if (!plan.batches && resolved.maxBatchSize === 0 && (config.maxBatchSize ?? 0) > 0) {
    problems.push(SAMPLE_TAKES_ONE);
  }
  problems.push(...instanceProblems(resolved, plan));
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
    instanceProblems: (changed) => instanceProblems(changed, plan),
    createExecutor: stepwise?.create(plan.create) ?? plan.create,
    strict: options.strict,
    mixedInputs: plan.mixesInputs(resolved),
    onSequenceEvict,
    initialStates: initial.states,
    variableLength: variable.variableLength,
  };
}
