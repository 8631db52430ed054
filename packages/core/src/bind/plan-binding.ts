import {
  type DescribedTensor,
  errorFor,
  fromConfigDataType,
  isDataType,
  type ModelConfig,
  type ModelSequenceBatching,
  matchesShape,
  nameByPosition,
  optionTypes,
  shapeToString,
  type TensorSpec,
  type TritonError,
  unknownDataTypeText,
  unknownOptions,
  wrongTypes,
} from "@tritonjs/protocol";
import { DEFAULT_MAX_BATCH_SIZE } from "@tritonjs/protocol/config";
import { SAMPLE_TAKES_ONE } from "../callback/batch-decorators.js";
import {
  checkMembers,
  ENSEMBLE_OPTION_TYPES,
  ENSEMBLE_STEP_TYPES,
  type EnsembleStep,
  resolveEnsemble,
} from "../config/ensemble.js";
import type { Gpus } from "../config/gpus.js";
import {
  type ConfiguredBatcher,
  isBatcher,
  MODEL_OPTION_TYPES,
  type ModelOptions,
  tritonBatcher,
} from "../config/model-options.js";
import {
  resolveConfig,
  validateConfig,
  validateOptions,
  wrongOptionTypes,
} from "../config/resolve-config.js";
import { initialStates, sequenceTensors } from "../config/sequence-batching.js";
import { sequenceBatching, stateFilesOf } from "../config/sequence-options.js";
import { type Backend, isBackend, type ModelDescription } from "../instance/backend.js";
import { ensembleCycle, type MemberOf } from "../model/ensemble-members.js";
import { type ModelPlan, noExecutor } from "../model/model-server.js";
import type { Batcher } from "../scheduler/batcher.js";
import { planVariableLength } from "../scheduler/dynamic/grouping-scheduler.js";
import type { AnyBindOptions, BindEnsembleOptions, RebindOptions } from "./bind-options.js";
import { instanceProblems, type PlanModule, planExecutors, planStepwise } from "./plan-executors.js";

const TENSOR_SPEC_TYPES = optionTypes<DescribedTensor>({
  // Checked by themselves.
  name: "any",
  dtype: "any",
  shape: "any",
  optional: "boolean",
  labels: "array",
  allowRaggedBatch: "boolean",
  isShapeTensor: "boolean",
  batchInput: "object",
  batchOutput: "object",
  rankUnknown: "boolean",
});

const BIND_TYPES = optionTypes<AnyBindOptions>({
  // Checked by themselves.
  modelName: "any",
  modelVersion: "any",
  inferFunc: "any",
  inputs: "any",
  outputs: "any",
  config: "object",
  modelConfig: "object",
  strict: "boolean",
  releasesInputs: "boolean",
  onSequenceEvict: "function",
  stateFiles: "object",
});

/** Options of a model after `rebind` with a change. */
export function replanBinding(given: AnyBindOptions, gpus: Gpus, planModule: PlanModule) {
  let options = given;
  return (change: RebindOptions): ModelPlan => {
    const changed = { ...options, ...change };
    const plan = planBinding(changed, () => false, gpus, planModule);
    options = changed;
    return plan;
  };
}

/** The error of `rebind` of an ensemble. */
export function ensembleStays(modelName: string): () => never {
  return () => {
    throw errorFor(
      "INVALID_CONFIG",
      `cannot rebind model '${modelName}': it is an ensemble, whose steps can be rebound`,
    );
  };
}

/** Turns the options of `bind` into a configuration and a way to make instances, or throws all their problems. */
export function planBinding(
  given: AnyBindOptions,
  isTaken: (name: string, version: number) => boolean,
  gpus: Gpus,
  planModule: PlanModule,
): ModelPlan {
  const wrong = wrongTypes("bind", given, BIND_TYPES);
  if (!isObject(given)) throw positional("bind", wrong);
  const { modelName, modelVersion = 1, config = {}, modelConfig } = given;
  if (wrong.length === 0) wrong.push(...wrongOptionTypes(config));
  const problems = [
    ...unknownOptions("bind", given, BIND_TYPES, { config: MODEL_OPTION_TYPES }),
    ...identityProblems(modelName, modelVersion, isTaken),
  ];
  if (wrong.length > 0) throw bindError(modelName, [...problems, ...wrong]);
  problems.push(...validateOptions(config));
  const inputs = namedSpecs("inputs", given.inputs);
  const outputs = namedSpecs("outputs", given.outputs);
  const misshapen = [...inputs.problems, ...outputs.problems];
  if (misshapen.length > 0) throw bindError(modelName, [...problems, ...misshapen]);
  const options = { ...given, inputs: inputs.specs, outputs: outputs.specs };
  const plan = planExecutors(options, planModule);
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
        labels: labelsOf(options.outputs),
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
  const batcher =
    config.batcher && isBatcher(config.batcher)
      ? (config.batcher as ConfiguredBatcher as Batcher)
      : undefined;
  problems.push(...(batcher?.problems?.(resolved) ?? []));
  const joining = tritonBatcher(config.batcher) || {};
  const variable = planVariableLength(joining, specs.inputs, specs.outputs, resolved);
  problems.push(...variable.problems);
  if (typeof joining.pad === "function" && plan.runsModule) {
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
  const { onSequenceEvict } = options;
  return {
    name: modelName,
    version: modelVersion,
    config: resolved,
    labels: specs.labels,
    instanceProblems: (changed) => instanceProblems(changed, plan),
    createExecutor: stepwise?.create(plan.create) ?? plan.create,
    strict: options.strict,
    mixedInputs: plan.mixesInputs(resolved),
    onSequenceEvict,
    initialStates: initial.states,
    variableLength: variable.variableLength,
    batcher,
  };
}

interface BoundModels {
  has(name: string, version: number): boolean;
  readonly memberOf: MemberOf;
}

const BIND_ENSEMBLE_TYPES = optionTypes<BindEnsembleOptions<[], []>>({
  modelName: "string",
  modelVersion: "number",
  inputs: "array",
  outputs: "array",
  steps: "array",
  config: "object",
  modelConfig: "object",
});

/** Checks the options of `bindEnsemble`, also against members that are bound, and throws all their problems. */
export function planEnsemble(
  options: BindEnsembleOptions<readonly TensorSpec[], readonly TensorSpec[]>,
  models: BoundModels,
): ModelPlan {
  const wrong = wrongTypes("bindEnsemble", options, BIND_ENSEMBLE_TYPES);
  if (!isObject(options)) throw positional("bindEnsemble", wrong);
  const { modelName, modelVersion = 1, inputs = [], outputs = [], steps = [], config = {} } = options;
  const problems = [
    ...unknownOptions("bindEnsemble", options, BIND_ENSEMBLE_TYPES),
    ...identityProblems(modelName, modelVersion, (name, version) => models.has(name, version)),
    ...unknownOptions("config", config, ENSEMBLE_OPTION_TYPES),
  ];
  if (wrong.length > 0) throw bindError(modelName, [...problems, ...wrong]);
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
    createExecutor: noExecutor,
  };
}

function stepProblems(steps: readonly EnsembleStep[]): string[] {
  if (!Array.isArray(steps)) return ["steps: expected a list of { modelName, inputMap, outputMap }"];
  return steps.flatMap((step: Partial<EnsembleStep> | null, i) => {
    if (typeof step !== "object" || step === null) return [`steps[${i}]: expected an object`];
    const problems = unknownOptions(`steps[${i}]`, step, ENSEMBLE_STEP_TYPES);
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

function labelsOf(outputs: readonly TensorSpec[] = []): Map<string, readonly string[]> {
  return new Map(outputs.flatMap(({ name, labels }) => (labels ? [[name, labels]] : [])));
}

function bindError(modelName: string, problems: readonly string[]): TritonError {
  const lines = problems.map((problem) => `- ${problem}`).join("\n");
  return errorFor("INVALID_CONFIG", `cannot bind model '${modelName}':\n${lines}`);
}

function isObject(options: unknown): boolean {
  return typeof options === "object" && options !== null && !Array.isArray(options);
}

/** The error of a call whose first argument is not its options. */
function positional(call: string, [problem]: readonly string[]): TritonError {
  return errorFor("INVALID_OPTION", `${problem}: ${call} takes all its options in one object`);
}

/** Specifications with names, which are those of their positions if none is given. */
function namedSpecs(
  where: "inputs" | "outputs",
  specs: unknown,
): { readonly specs: readonly TensorSpec[] | undefined; readonly problems: string[] } {
  if (!Array.isArray(specs)) return { specs: undefined, problems: specProblems(where, specs) };
  const named = nameByPosition(where, specs) as readonly TensorSpec[];
  return { specs: named, problems: specProblems(where, named) };
}

/** Lists faults of specifications from JavaScript, where no compiler has checked them. */
function specProblems(where: string, specs: unknown): string[] {
  if (specs === undefined) return [];
  if (!Array.isArray(specs)) return [`${where}: expected a list of { name, dtype, shape }`];
  const other = specs.findIndex((spec: Partial<TensorSpec> | null) => typeof spec?.name === "string");
  return specs.flatMap((spec: (Partial<TensorSpec> & { readonly datatype?: unknown }) | null, i) => {
    if (typeof spec?.name !== "string") {
      const problem = `${where}[${i}] has no name`;
      if (other === -1) return [problem];
      return [`${problem}, but ${where}[${other}] is '${specs[other].name}': name all of them or none`];
    }
    const what = `${where}[${i}] '${spec.name}'`;
    if (spec.dtype === undefined && spec.datatype !== undefined) {
      return [
        `${what} has no dtype: it has a datatype, as in metadata and requests, where the shape has the batch axis; ` +
          `expected dtype: '${String(spec.datatype)}' and a shape without that axis`,
      ];
    }
    const problems = [
      ...unknownOptions(what, spec, TENSOR_SPEC_TYPES),
      ...wrongTypes(what, spec, TENSOR_SPEC_TYPES),
    ];
    if (!Array.isArray(spec.shape)) problems.push(`${what} has no shape: expected a list of dimensions`);
    else if (typeof spec.dtype !== "string") problems.push(`${what} has no dtype`);
    return problems;
  });
}

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

interface BackendSpecs {
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
  readonly batchingByDefault: boolean;
  readonly maxBatchSize?: number | undefined;
  readonly decoupled?: boolean | undefined;
  /** Names of classes by output: the given ones before those of the model file. */
  readonly labels: ReadonlyMap<string, readonly string[]>;
  readonly problems: string[];
}

/**
 * Merges the description of a model file with the options of `bind`. Specifications that were not given are taken from
 * the file. Given ones must agree with it. A batch axis must be variable in every tensor. Tensors that the sequence
 * batcher exchanges with the model are not specifications: clients neither send nor receive them.
 */
function describeBackend(
  backend: Backend,
  inputs: readonly TensorSpec[] | undefined,
  outputs: readonly TensorSpec[] | undefined,
  options: ModelOptions,
  sequences?: ModelSequenceBatching,
  modelConfig: Partial<ModelConfig> = {},
): BackendSpecs {
  const described = backend.describe();
  const description = described && withOptionalInputs(described, inputs);
  if (description === undefined) {
    const batching = options.batching ?? (options.maxBatchSize ?? 0) > 0;
    return {
      inputs: inputs ?? [],
      outputs: outputs ?? [],
      batchingByDefault: batching,
      labels: labelsOf(outputs),
      problems: [],
    };
  }
  const shapeTensors = shapeTensorsOf([...(inputs ?? []), ...(outputs ?? [])], modelConfig);
  const asInConfig = description.asInConfig ?? false;
  const withRows = tensorsOf(description).filter(({ spec }) => !shapeTensors.has(spec.name));
  const given = new Set([...(inputs ?? []), ...(outputs ?? [])].map(({ name }) => name));
  const fixed = withRows.filter(
    ({ spec }) => spec.shape[0] !== -1 && !(spec.rankUnknown && given.has(spec.name)),
  );
  const size = options.maxBatchSize ?? description.maxBatchSize;
  const defaulted = description.inputs.find(({ optional }) => optional && !asInConfig);
  const batches = fixed.length === 0 && defaulted === undefined;
  const batching = options.batching ?? (size === undefined ? !asInConfig && batches : size > 0);
  const problems = contradictions(description, options, batching);
  const hasRows = batching && !asInConfig;
  if (hasRows && defaulted !== undefined) {
    problems.push(
      `optional input '${defaulted.name}' is not supported for models that support batching: set config.batching to false`,
    );
  }
  if (hasRows) {
    const size = options.maxBatchSize ?? DEFAULT_MAX_BATCH_SIZE;
    for (const { kind, spec } of fixed) {
      problems.push(
        `config.maxBatchSize is ${size}, but the first dimension of ${kind} '${spec.name}' in the model file is ` +
          `not variable: its shape is ${shapeToString(spec.shape)}; set config.batching to false or export the model ` +
          "with a variable first dimension",
      );
    }
  }
  // A configuration cannot express dimensions of 0, which tensors that are always empty have.
  const strip = (spec: TensorSpec): TensorSpec => {
    const shape = spec.shape.map((dim) => (dim === 0 ? -1 : dim));
    return { ...spec, shape: hasRows && !shapeTensors.has(spec.name) ? shape.slice(1) : shape };
  };
  const made = (modelConfig.batchInput ?? []).flatMap(({ targetName }) => targetName);
  const { inputs: sequenceInputs, outputs: sequenceOutputs } = sequenceTensors(sequences);
  const clientInputs = description.inputs.filter(
    ({ name }) => !sequenceInputs.includes(name) && !made.includes(name),
  );
  const ragged = [...(inputs ?? []), ...(modelConfig.input ?? [])].filter((input) => input.allowRaggedBatch);
  problems.push(...raggedProblems(ragged, description));
  const clientOutputs = description.outputs.filter(({ name }) => !sequenceOutputs.includes(name));
  if (inputs !== undefined) compare("input", inputs, clientInputs, hasRows, problems, asInConfig);
  if (outputs !== undefined) compare("output", outputs, description.outputs, hasRows, problems, asInConfig);
  const states = (sequences?.state ?? []).map(({ dataType, dims, ...names }) => ({
    ...names,
    dtype: fromConfigDataType(dataType)!,
    shape: dims,
  }));
  const stateInputs = states.map(({ inputName: name, dtype, shape }) => ({ name, dtype, shape }));
  const stateOutputs = states.map(({ outputName: name, dtype, shape }) => ({ name, dtype, shape }));
  compare("state input", stateInputs, description.inputs, hasRows, problems, asInConfig);
  compare("state output", stateOutputs, description.outputs, hasRows, problems, asInConfig);
  return {
    inputs: together(inputs, clientInputs.map(strip), asInConfig),
    outputs: together(outputs, clientOutputs.map(strip), asInConfig),
    batchingByDefault: batching,
    maxBatchSize: description.maxBatchSize,
    decoupled: description.decoupled,
    labels: labelsOf([...description.outputs, ...(outputs ?? [])]),
    problems,
  };
}

/** Adds the inputs with a default that the options of `bind` make optional. */
function withOptionalInputs(
  description: ModelDescription,
  given: readonly TensorSpec[] = [],
): ModelDescription {
  const { inputs, optionalInputs = [] } = description;
  const chosen = optionalInputs.filter(({ name }) => given.some((one) => one.optional && one.name === name));
  const added = chosen.map((one) => ({ ...one, optional: true }));
  return added.length === 0 ? description : { ...description, inputs: [...inputs, ...added] };
}

/** The given tensors, or the described ones if none are given. */
function together(
  given: readonly TensorSpec[] | undefined,
  described: readonly TensorSpec[],
  asInConfig: boolean,
): readonly TensorSpec[] {
  if (given === undefined) return described;
  if (!asInConfig) return given;
  return [...given, ...described.filter(({ name }) => !given.some((spec) => spec.name === name))];
}

/** Lists options that contradict a model which fixes its own batching and responses. */
function contradictions(
  { maxBatchSize, decoupled }: ModelDescription,
  options: ModelOptions,
  batching: boolean,
): string[] {
  const problems: string[] = [];
  const asked = batching ? (options.maxBatchSize ?? maxBatchSize ?? 0) : 0;
  if (maxBatchSize !== undefined && (asked > maxBatchSize || (batching && maxBatchSize === 0))) {
    problems.push(
      `config.maxBatchSize is ${asked || DEFAULT_MAX_BATCH_SIZE}, but the model takes at most ${maxBatchSize} rows`,
    );
  }
  if (decoupled !== undefined && options.decoupled !== undefined && decoupled !== options.decoupled) {
    problems.push(`config.decoupled: expected ${decoupled}, as the model is, got ${options.decoupled}`);
  }
  return problems;
}

function tensorsOf({ inputs, outputs }: ModelDescription) {
  return [
    ...inputs.map((spec) => ({ kind: "input", spec })),
    ...outputs.map((spec) => ({ kind: "output", spec })),
  ];
}

function compare(
  kind: string,
  given: readonly TensorSpec[],
  inFile: readonly DescribedTensor[],
  batching: boolean,
  problems: string[],
  asInConfig = false,
): void {
  for (const spec of given) {
    const actual = inFile.find(({ name }) => name === spec.name);
    if (actual === undefined) {
      if (asInConfig) continue;
      const names = inFile.map(({ name }) => `'${name}'`).join(", ");
      problems.push(`${kind} '${spec.name}' is not in the model file: expected one of ${names}`);
      continue;
    }
    if (actual.dtype !== spec.dtype) {
      problems.push(
        `${kind} '${spec.name}': expected dtype ${actual.dtype}, as in the model file, got ${spec.dtype}`,
      );
    }
    if (!hasOwnShape(spec) || actual.rankUnknown) continue;
    const full = batching && !spec.isShapeTensor ? [-1, ...spec.shape] : spec.shape;
    if (!matchesShape(actual.shape, full) && !matchesShape(full, actual.shape)) {
      problems.push(
        `${kind} '${spec.name}' has shape ${shapeToString(full)}, but in the model file it is ` +
          `${shapeToString(actual.shape)}`,
      );
    }
  }
  if (kind !== "input" || asInConfig) return;
  for (const { name } of inFile) {
    if (!given.some((spec) => spec.name === name))
      problems.push(`input '${name}' of the model file is missing: add it to inputs`);
  }
}

/** False for a tensor whose shape in the model file follows from the shapes of a whole batch. */
function hasOwnShape({ allowRaggedBatch, batchInput, batchOutput }: TensorSpec): boolean {
  if (allowRaggedBatch || batchOutput?.kind === "BATCH_SCATTER_WITH_INPUT_SHAPE") return false;
  return batchInput === undefined || batchInput.kind === "PADDING_MASK";
}

function shapeTensorsOf(specs: readonly TensorSpec[], { input = [], output = [] }: Partial<ModelConfig>) {
  const all = [...specs, ...input, ...output];
  return new Set(all.filter(({ isShapeTensor }) => isShapeTensor).map(({ name }) => name));
}

/** A model file takes a ragged input as the elements of all requests, in one dimension. */
function raggedProblems(
  ragged: readonly { readonly name: string; readonly optional?: boolean | undefined }[],
  description: ModelDescription,
): string[] {
  const expected = "configuration expects model provides input with shape [-1]";
  return ragged.flatMap(({ name, optional }) => {
    if (optional)
      return [`${expected} for ragged input '${name}', which is not supported for optional input`];
    const shape = description.inputs.find((input) => input.name === name)?.shape;
    if (shape === undefined || (shape.length === 1 && shape[0] === -1)) return [];
    return [`${expected} for ragged input '${name}', model provides ${shapeToString(shape)}`];
  });
}
