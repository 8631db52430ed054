import {
  isDataType,
  type ModelConfig,
  type TensorSpec,
  TritonError,
  unknownDataTypeText,
} from "@tritonjs/protocol";
import { SAMPLE_TAKES_ONE } from "../callback/batch-decorators.js";
import {
  checkMembers,
  ENSEMBLE_OPTION_KEYS,
  ENSEMBLE_STEP_KEYS,
  type EnsembleStep,
  resolveEnsemble,
} from "../config/ensemble.js";
import type { Gpus } from "../config/gpus.js";
import { MODEL_OPTION_KEYS } from "../config/model-options.js";
import { keyList, unknownKeys } from "../config/option-names.js";
import { resolveConfig, validateConfig, validateOptions } from "../config/resolve-config.js";
import { initialStates } from "../config/sequence-batching.js";
import { sequenceBatching, stateFilesOf } from "../config/sequence-options.js";
import { isBackend } from "../instance/backend.js";
import { ensembleCycle, type MemberOf } from "../model/ensemble-members.js";
import type { ModelPlan } from "../model/model-server.js";
import { planVariableLength } from "../scheduler/grouping-scheduler.js";
import type { AnyBindOptions, BindEnsembleOptions } from "./bind-options.js";
import { type BackendSpecs, describeBackend } from "./describe-backend.js";
import { instanceProblems, planExecutors, planStepwise } from "./plan-executors.js";

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
): ModelPlan {
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

/** The models that are bound so far. */
interface BoundModels {
  has(name: string, version: number): boolean;
  readonly memberOf: MemberOf;
}

const BIND_ENSEMBLE_KEYS = keyList<BindEnsembleOptions<[], []>>({
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
): ModelPlan {
  const { modelName, modelVersion = 1, inputs = [], outputs = [], steps = [], config = {} } = options;
  const problems = [
    ...unknownKeys("bindEnsemble", options, BIND_ENSEMBLE_KEYS),
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

/** Lists problems with the name and the version of a model. */
function identityProblems(
  name: string,
  version: number,
  isTaken: (name: string, version: number) => boolean,
): string[] {
  const problems = nameProblems(name);
  if (!Number.isSafeInteger(version) || version < 1) {
    problems.push(`modelVersion: expected an integer of at least 1, got ${version}`);
  } else if (isTaken(name, version)) {
    problems.push(`model '${name}' version ${version} is already bound: choose another name or version`);
  }
  return problems;
}

/** Class names by output. */
function labelsOf(outputs: readonly TensorSpec[] = []): Map<string, readonly string[]> {
  return new Map(outputs.flatMap(({ name, labels }) => (labels ? [[name, labels]] : [])));
}

/** Makes the error that lists all problems of a binding, one per line. */
function bindError(modelName: string, problems: readonly string[]): TritonError {
  const lines = problems.map((problem) => `- ${problem}`).join("\n");
  return new TritonError("INVALID_ARG", `cannot bind model '${modelName}':\n${lines}`, {
    reason: "INVALID_CONFIG",
  });
}

/**
 * Lists faults that make specifications unreadable. They may come from JavaScript, where no compiler has checked them.
 */
function specProblems(where: string, specs: unknown): string[] {
  if (specs === undefined) return [];
  if (!Array.isArray(specs)) return [`${where}: expected a list of { name, dtype, shape }`];
  return specs.flatMap((spec: Partial<TensorSpec> | null, i) => {
    if (typeof spec?.name !== "string") return [`${where}[${i}] has no name`];
    if (!Array.isArray(spec.shape))
      return [`${where}[${i}] '${spec.name}' has no shape: expected a list of dimensions`];
    return typeof spec.dtype === "string" ? [] : [`${where}[${i}] '${spec.name}' has no dtype`];
  });
}

/** Lists specifications with a data type that does not exist. */
function dataTypeProblems(where: string, specs: readonly TensorSpec[] = []): string[] {
  return specs.flatMap(({ name, dtype }, i) =>
    isDataType(dtype) ? [] : [`${where}[${i}] '${name}' has an ${unknownDataTypeText(dtype)}`],
  );
}

/** True for the problem that the check of a configuration reports for a data type that does not exist. */
function isDataTypeProblem(problem: string): boolean {
  return problem.includes("expected a known 'data_type'");
}

function nameProblems(name: unknown): string[] {
  if (name === "") return ["Model name cannot be empty"];
  if (typeof name !== "string" || !/^[a-zA-Z0-9._-]+$/.test(name) || name === "." || name === "..") {
    return [
      `Model name can only contain alphanumeric characters, dots, underscores and dashes, got '${String(name)}'`,
    ];
  }
  return [];
}
