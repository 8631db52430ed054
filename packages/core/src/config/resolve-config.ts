import {
  fromConfigDataType,
  isDecoupled,
  type ModelConfig,
  type ModelDynamicBatching,
  type ModelEnsembleStep,
  type ModelInput,
  type ModelMetricControl,
  type ModelOutput,
  type ModelQueuePolicy,
  type ModelWarmup,
  type OptionTypes,
  type TensorSpec,
  toConfigDataType,
  unknownOptions,
  wrongTypes,
} from "@tritonjs/protocol";
import {
  DEFAULT_MAX_BATCH_SIZE,
  defaultDynamicBatching,
  defaultQueuePolicy,
  emptyModelConfig,
  emptyModelInput,
  emptyModelOutput,
  specFields,
  textParameters,
} from "@tritonjs/protocol/config";
import { checkMembers, ensembleProblems } from "./ensemble.js";
import { type Gpus, NO_GPUS } from "./gpus.js";
import {
  groupList,
  instanceGroupProblems,
  instanceGroups,
  normalizeInstanceGroups,
} from "./instance-groups.js";
import {
  BATCHER_OPTION_TYPES,
  type BatcherOptions,
  INSTANCE_GROUP_OPTION_TYPES,
  type InstanceGroupOptions,
  isBatcher,
  MODEL_OPTION_TYPES,
  type ModelOptions,
  QUEUE_POLICY_OPTION_TYPES,
  type QueuePolicyOptions,
  RATE_LIMITER_OPTION_TYPES,
  RECYCLE_OPTION_TYPES,
  tritonBatcher,
  type WarmupOptions,
  warmupData,
  warmupDataProblems,
  withSettings,
} from "./model-options.js";
import {
  normalizeSequenceBatching,
  sequenceSchedulingProblems,
  validateSequenceStates,
} from "./sequence-batching.js";
import {
  SEQUENCE_CONTROL_TYPES,
  SEQUENCE_OPTION_TYPES,
  SEQUENCE_STATE_OPTION_TYPES,
  type SequenceOptions,
  sequenceBatching,
  sequenceStateProblems,
} from "./sequence-options.js";
import { batchIoProblems, dimsProblems } from "./validate-model-io.js";

/** Inputs of `resolveConfig`: the options of `bind`, and what it knows about the model besides them. */
interface ResolveInput {
  readonly modelName: string;
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
  readonly options: ModelOptions;
  readonly backend: string;
  readonly platform: string;
  readonly batchingByDefault: boolean;
  readonly decoupledByDefault: boolean;
  readonly defaultInstanceCount: number;
  /** GPUs that instance groups may name. @default none */
  readonly gpus?: Gpus;
  /** Fields of Triton's message that the options do not cover. They override the options. */
  readonly overrides?: Partial<ModelConfig>;
}

/** Turns specifications and options into a configuration. Checks nothing. */
export function resolveConfig(source: ResolveInput): ModelConfig {
  const { modelName, options } = source;
  const batching = options.batching ?? source.batchingByDefault;
  const config: ModelConfig = {
    ...emptyModelConfig(),
    name: modelName,
    backend: source.backend,
    platform: source.platform,
    maxBatchSize: batching ? (options.maxBatchSize ?? DEFAULT_MAX_BATCH_SIZE) : 0,
    input: source.inputs
      .filter((spec) => spec.batchInput === undefined)
      .map((spec) => ({
        ...emptyModelInput(),
        ...specFields(spec),
        optional: spec.optional ?? false,
        allowRaggedBatch: spec.allowRaggedBatch ?? false,
        isShapeTensor: spec.isShapeTensor ?? false,
      })),
    output: source.outputs.map((spec) => ({
      ...emptyModelOutput(),
      ...specFields(spec),
      isShapeTensor: spec.isShapeTensor ?? false,
    })),
    ...batchTensorsOf(source.inputs, source.outputs),
    instanceGroup: instanceGroups(modelName, options.instanceGroup, source.defaultInstanceCount),
    modelWarmup: (options.modelWarmup ?? []).map(warmup),
    parameters: textParameters(options.parameters),
  };
  if (options.decoupled ?? source.decoupledByDefault) config.modelTransactionPolicy = { decoupled: true };
  if (options.responseCache) config.responseCache = { enable: true };
  const sequences = options.sequence && sequenceBatching(options.sequence);
  if (sequences !== undefined) config.sequenceBatching = sequences;
  const scheduled = sequences ?? source.overrides?.sequenceBatching;
  // Requests of a decoupled model without a batch axis can have priorities and limits of their queue, too.
  const queues =
    batching || (options.batcher !== undefined && config.modelTransactionPolicy?.decoupled === true);
  const given = tritonBatcher(options.batcher);
  if (queues && given !== false && scheduled === undefined)
    config.dynamicBatching = dynamicBatching(given ?? {});
  const normal = normalizeConfig({ ...config, ...source.overrides });
  const merged =
    options.batcher && isBatcher(options.batcher) ? withSettings(normal, options.batcher) : normal;
  const gpus = source.gpus ?? NO_GPUS;
  const groups = merged.instanceGroup.length > 0 ? merged.instanceGroup : config.instanceGroup;
  return {
    ...merged,
    instanceGroup: normalizeInstanceGroups({ name: merged.name, instanceGroup: groups }, gpus),
  };
}

/** Batch inputs and outputs as Triton's configuration has them. Kinds of this library are left out. */
function batchTensorsOf(
  inputs: readonly TensorSpec[],
  outputs: readonly TensorSpec[],
): Pick<ModelConfig, "batchInput" | "batchOutput"> {
  return {
    batchInput: inputs.flatMap(({ name, dtype, batchInput }) =>
      batchInput === undefined || batchInput.kind === "PADDING_MASK"
        ? []
        : [
            {
              kind: batchInput.kind,
              targetName: [name],
              dataType: toConfigDataType(dtype),
              sourceInput: [batchInput.sourceInput],
            },
          ],
    ),
    batchOutput: outputs.flatMap(({ name, batchOutput }) =>
      batchOutput === undefined || batchOutput.kind === "CUT_TO_INPUT_SHAPE"
        ? []
        : [{ targetName: [name], kind: batchOutput.kind, sourceInput: [batchOutput.sourceInput] }],
    ),
  };
}

function warmup({ name, batchSize = 1, count = 1, inputs }: WarmupOptions): ModelWarmup {
  const entries = Object.entries(inputs).map(([input, options]) => {
    const { dtype, shape, data: _data, ...data } = options;
    const inputData = warmupData(name, input, options);
    const given =
      typeof inputData === "object"
        ? { inputData }
        : data.inputDataFile !== undefined || data.randomData
          ? data
          : { zeroData: true };
    return [input, { dataType: toConfigDataType(dtype), dims: [...shape], ...given }] as const;
  });
  return { name, batchSize, count, inputs: Object.fromEntries(entries) };
}

function dynamicBatching(options: BatcherOptions): ModelDynamicBatching {
  const { preferredBatchSize = [], defaultQueuePolicy: shared, priorityQueuePolicy = {}, ...given } = options;
  // Functions are not part of a configuration: they stay with the batcher.
  const { batchBy: _batchBy, cost: _cost, maxBatchCost: _maxBatchCost, pad: _pad, ...triton } = given;
  const policy = (given: QueuePolicyOptions): ModelQueuePolicy => ({ ...defaultQueuePolicy(), ...given });
  return {
    ...defaultDynamicBatching(),
    ...triton,
    preferredBatchSize: [...preferredBatchSize],
    ...(shared === undefined ? {} : { defaultQueuePolicy: policy(shared) }),
    priorityQueuePolicy: Object.fromEntries(
      Object.entries(priorityQueuePolicy).map(([level, given]) => [level, policy(given)]),
    ),
  };
}

/** Fills fields that follow from others, as Triton does before it shows a configuration. */
export function normalizeConfig(config: ModelConfig): ModelConfig {
  const batching = config.dynamicBatching;
  if (batching !== undefined && batching.preferredBatchSize.length === 0 && config.maxBatchSize > 0) {
    return { ...config, dynamicBatching: { ...batching, preferredBatchSize: [config.maxBatchSize] } };
  }
  const sequences = config.sequenceBatching;
  if (sequences !== undefined) {
    return { ...config, sequenceBatching: normalizeSequenceBatching(sequences, config.maxBatchSize) };
  }
  return config;
}

/** Lists all problems with a configuration, in Triton's words where it has some. */
export function validateConfig(config: ModelConfig, gpus: Gpus = NO_GPUS): string[] {
  const { name, input, output, batchInput, sequenceBatching } = config;
  const inputs = new Set(input.map((one) => one.name));
  const clashes = batchInput.flatMap(({ targetName }) => targetName).filter((target) => inputs.has(target));
  return [
    ...sizeProblems(config),
    ...(output.length === 0 ? [`model '${name}' must have at least one output`] : []),
    ...namedTensorProblems("input", input),
    ...namedTensorProblems("output", output),
    ...instanceGroupProblems(config, gpus),
    ...schedulingProblems(config),
    ...(sequenceBatching === undefined ? [] : validateSequenceStates(config, sequenceBatching)),
    ...clashes.map(
      (target) =>
        `batch input '${target}' has the name of an input that clients send: rename one of them for ${name}`,
    ),
    ...batchIoProblems(config).map((problem) => `${problem} for ${name}`),
  ];
}

export function sizeProblems({ name, maxBatchSize }: ModelConfig): string[] {
  const isSize = Number.isInteger(maxBatchSize) && maxBatchSize >= 0;
  return isSize ? [] : [`'max_batch_size' must be non-negative value for ${name}`];
}

/** Lists problems with batching, sequences, the ensemble, the cache and metrics, in Triton's order. */
export function schedulingProblems(config: ModelConfig): string[] {
  const { dynamicBatching, sequenceBatching } = config;
  return [
    ...(dynamicBatching === undefined ? [] : dynamicBatchingProblems(config, dynamicBatching)),
    ...(sequenceBatching === undefined ? [] : sequenceSchedulingProblems(config, sequenceBatching)),
    ...ensembleProblems(config),
    ...responseCacheProblems(config),
    ...(config.modelMetrics?.metricControl ?? []).flatMap(metricProblems),
  ];
}

function metricProblems({ metricIdentifier, histogramOptions }: ModelMetricControl): string[] {
  const problems: string[] = [];
  if (metricIdentifier === undefined) problems.push("metric control must specify 'metric_identifier'");
  else if (metricIdentifier.family === "") {
    problems.push("metric identifier must specify non-empty 'family'");
  }
  if (histogramOptions === undefined) problems.push("metric control must specify 'histogram_options'");
  else if (histogramOptions.buckets.length === 0) {
    problems.push("histogram options must specify non-empty 'buckets'");
  }
  return problems;
}

function namedTensorProblems(
  kind: "input" | "output",
  tensors: readonly (ModelInput | ModelOutput)[],
): string[] {
  return tensors.flatMap(({ name, dataType, dims }, i) => {
    const label = `model ${kind} '${name}'`;
    const problems: string[] = [];
    if (name === "") problems.push(`model ${kind} must specify 'name'`);
    else if (tensors.findIndex((one) => one.name === name) < i) {
      problems.push(`${label} is given more than once`);
    }
    if (fromConfigDataType(dataType) === undefined) {
      problems.push(`${label}: expected a known 'data_type', got '${dataType}'`);
    }
    return [...problems, ...dimsProblems(label, dims)];
  });
}

/** Lists options of a wrong type, with which the options cannot be read any further. */
export function wrongOptionTypes(options: ModelOptions): string[] {
  const { batching, sequence, instanceGroup = [] } = options;
  const batcher = tritonBatcher(options.batcher) ?? false;
  const problems = wrongTypes("config", options, MODEL_OPTION_TYPES);
  if (batching !== undefined && typeof batching !== "boolean") {
    const advice = typeof batching === "object" ? ": the options of the batcher are config.batcher" : "";
    problems.push(`config.batching: expected a boolean, got ${typeof batching}${advice}`);
  }
  const check = (where: string, value: unknown, types: OptionTypes): void => {
    if (value !== undefined) problems.push(...wrongTypes(where, value, types));
  };
  if (batcher !== false) {
    check("config.batcher", batcher, BATCHER_OPTION_TYPES);
    const { defaultQueuePolicy, priorityQueuePolicy } = Object(batcher) as BatcherOptions;
    for (const policy of [defaultQueuePolicy, ...Object.values(priorityQueuePolicy ?? {})])
      check("a queue policy of config.batcher", policy, QUEUE_POLICY_OPTION_TYPES);
  }
  for (const group of groupList(instanceGroup)) {
    check("config.instanceGroup", group, INSTANCE_GROUP_OPTION_TYPES);
    const { rateLimiter, recycle } = Object(group) as InstanceGroupOptions;
    check("config.instanceGroup.rateLimiter", rateLimiter, RATE_LIMITER_OPTION_TYPES);
    check("config.instanceGroup.recycle", recycle, RECYCLE_OPTION_TYPES);
  }
  check("config.sequence", sequence, SEQUENCE_OPTION_TYPES);
  const { controls, states } = Object(sequence) as SequenceOptions;
  check("config.sequence.controls", controls, SEQUENCE_CONTROL_TYPES);
  if (Array.isArray(states))
    for (const state of states) check("config.sequence.states", state, SEQUENCE_STATE_OPTION_TYPES);
  return problems;
}

/** Lists problems with the options before they are resolved: unknown names and contradictions. */
export function validateOptions(options: ModelOptions): string[] {
  const problems = unknownOptions("config", options, MODEL_OPTION_TYPES, {
    "config.batcher": BATCHER_OPTION_TYPES,
    "config.sequence": SEQUENCE_OPTION_TYPES,
    "config.instanceGroup": INSTANCE_GROUP_OPTION_TYPES,
  });
  if (options.batching === false) {
    if (options.maxBatchSize !== undefined && options.maxBatchSize !== 0) {
      problems.push(
        `config.maxBatchSize is ${options.maxBatchSize}, but config.batching is false: leave one of them out`,
      );
    }
    if (options.batcher !== undefined && options.batcher !== false) {
      problems.push("config.batcher is given, but config.batching is false: leave one of them out");
    }
  }
  if (options.batching === true && options.maxBatchSize === 0) {
    problems.push("config.maxBatchSize is 0, but config.batching is true: leave one of them out");
  }
  const batcher = tritonBatcher(options.batcher);
  if (batcher !== undefined && batcher !== false) {
    problems.push(...unknownOptions("config.batcher", batcher, BATCHER_OPTION_TYPES));
    const { defaultQueuePolicy = {}, priorityQueuePolicy = {} } = batcher;
    for (const policy of [defaultQueuePolicy, ...Object.values(priorityQueuePolicy)]) {
      problems.push(...unknownOptions("a queue policy of config.batcher", policy, QUEUE_POLICY_OPTION_TYPES));
    }
  }
  if (options.sequence !== undefined) problems.push(...sequenceProblems(options.sequence, options.batcher));
  problems.push(...groupList(options.instanceGroup ?? []).flatMap(groupOptionProblems));
  problems.push(...warmupDataProblems(options.modelWarmup));
  return problems;
}

function groupOptionProblems(group: InstanceGroupOptions): string[] {
  const { count, rateLimiter = {}, recycle = {} } = group;
  const where = "config.instanceGroup";
  return [
    ...unknownOptions(where, group, INSTANCE_GROUP_OPTION_TYPES),
    ...unknownOptions(`${where}.rateLimiter`, rateLimiter, RATE_LIMITER_OPTION_TYPES),
    ...unknownOptions(`${where}.recycle`, recycle, RECYCLE_OPTION_TYPES),
    // Triton treats 0 as "not given".
    ...(count === 0 ? [`${where}.count: expected at least 1, got 0`] : []),
  ];
}

function sequenceProblems(sequence: SequenceOptions, batcher: ModelOptions["batcher"]): string[] {
  const problems = [
    ...unknownOptions("config.sequence", sequence, SEQUENCE_OPTION_TYPES),
    ...unknownOptions("config.sequence.controls", sequence.controls ?? {}, SEQUENCE_CONTROL_TYPES),
  ];
  for (const state of sequence.states ?? []) {
    problems.push(...unknownOptions("config.sequence.states", state, SEQUENCE_STATE_OPTION_TYPES));
  }
  problems.push(...sequenceStateProblems(sequence.states ?? []));
  const { strategy = "oldest" } = sequence;
  if (strategy !== "oldest" && strategy !== "direct") {
    problems.push(`config.sequence.strategy: expected 'oldest' or 'direct', got '${String(strategy)}'`);
  }
  const others: readonly (keyof SequenceOptions)[] =
    strategy === "direct"
      ? ["maxCandidateSequences", "preferredBatchSize", "preserveOrdering"]
      : ["minimumSlotUtilization"];
  for (const key of others) {
    if (sequence[key] !== undefined)
      problems.push(`config.sequence.${key} has no effect with strategy '${strategy}': leave it out`);
  }
  if (batcher !== undefined && batcher !== false && !isBatcher(batcher)) {
    problems.push(
      "config.batcher and config.sequence are both given, but a model has one scheduler: leave one of them out",
    );
  }
  return problems;
}

function dynamicBatchingProblems(
  { name, maxBatchSize }: ModelConfig,
  batching: ModelDynamicBatching,
): string[] {
  const problems: string[] = [];
  for (const size of batching.preferredBatchSize) {
    if (!Number.isInteger(size) || size <= 0) {
      problems.push(`dynamic batching preferred size must be positive for ${name}`);
    } else if (size > maxBatchSize) {
      problems.push(`dynamic batching preferred size must be <= max batch size for ${name}`);
    }
  }
  if (!Number.isFinite(batching.maxQueueDelayMicroseconds) || batching.maxQueueDelayMicroseconds < 0) {
    problems.push(`dynamic batching max queue delay must be a number of microseconds >= 0 for ${name}`);
  }
  problems.push(...priorityProblems(name, batching));
  return problems;
}

function priorityProblems(model: string, batching: ModelDynamicBatching): string[] {
  const { priorityLevels: levels, defaultPriorityLevel, preserveOrdering, priorityQueuePolicy } = batching;
  const problems: string[] = [];
  const isLevel = (level: number) => level >= 1 && level <= levels;
  if (levels > 0 && !isLevel(defaultPriorityLevel)) {
    problems.push(`default priority level must be in range [1, ${levels}] for ${model}`);
  }
  // Without priority levels there is one queue, and the policies of levels have no effect.
  if (levels > 0 && !Object.keys(priorityQueuePolicy).every((level) => isLevel(Number(level)))) {
    problems.push(`priority queue policy must have priority level in range [1, ${levels}] for ${model}`);
  }
  if (!preserveOrdering) return problems;
  if (levels > 1) {
    problems.push(`Only one priority level is allowed when 'preserve_ordering' is true for ${model}`);
  }
  if ([batching.defaultQueuePolicy, ...Object.values(priorityQueuePolicy)].some(delays)) {
    problems.push(
      `Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for ${model}`,
    );
  }
  return problems;
}

/** Whether requests may be moved behind others. That never happens without a timeout. */
function delays(policy: ModelQueuePolicy | undefined): boolean {
  return policy?.timeoutAction === "DELAY" && policy.defaultTimeoutMicroseconds !== 0;
}

/** Lists reasons why a model's responses cannot be cached, apart from those about sequences. */
export function responseCacheProblems(config: ModelConfig): string[] {
  if (!config.responseCache?.enable || !isDecoupled(config)) return [];
  return [
    `Response Cache does not currently support model ${config.name} with 'decoupled' transaction policy. ` +
      "Please disable the response cache.",
  ];
}

/** Lists reasons why an ensemble does not fit its members; see {@link checkMembers}. */
export function membersProblems(
  config: ModelConfig,
  memberOf: (step: ModelEnsembleStep) => ModelConfig | undefined,
): string[] {
  const { problems, decoupled } = checkMembers(config, memberOf);
  return [...problems, ...responseCacheProblems({ ...config, modelTransactionPolicy: { decoupled } })];
}
