import { fromConfigDataType } from "../tensor/data-type.js";
import { elementCount } from "../tensor/shape.js";
import {
  isDecoupled,
  type ModelConfig,
  type ModelDynamicBatching,
  type ModelInput,
  type ModelOutput,
} from "./model-config.js";
import { ensembleProblems } from "./validate-ensemble.js";
import { validateSequenceBatching } from "./validate-sequence-batching.js";

/**
 * Everything that is wrong with a configuration, each in one line; empty for a good one. Where Triton has a
 * text for the fault, it is that text.
 */
export function validateConfig(config: ModelConfig): string[] {
  const problems: string[] = [];
  if (!Number.isInteger(config.maxBatchSize) || config.maxBatchSize < 0) {
    problems.push(`'max_batch_size' must be non-negative value for ${config.name}`);
  }
  if (config.output.length === 0) problems.push(`model '${config.name}' must have at least one output`);
  checkTensors("input", config.input, problems);
  checkTensors("output", config.output, problems);
  checkInstanceGroups(config, problems);
  if (config.responseCache?.enable && isDecoupled(config)) {
    problems.push(
      `Response Cache does not currently support model ${config.name} with 'decoupled' transaction policy. ` +
        "Please disable the response cache.",
    );
  }
  if (config.dynamicBatching !== undefined) checkDynamicBatching(config, config.dynamicBatching, problems);
  if (config.sequenceBatching !== undefined) {
    problems.push(...validateSequenceBatching(config, config.sequenceBatching));
  }
  problems.push(...ensembleProblems(config));
  return problems;
}

function checkTensors(
  kind: "input" | "output",
  tensors: readonly (ModelInput | ModelOutput)[],
  problems: string[],
): void {
  const seen = new Set<string>();
  for (const tensor of tensors) {
    const label = `model ${kind} '${tensor.name}'`;
    if (tensor.name === "") problems.push(`model ${kind} must specify 'name'`);
    else if (seen.has(tensor.name)) problems.push(`${label} is given more than once`);
    seen.add(tensor.name);
    if (fromConfigDataType(tensor.dataType) === undefined) {
      problems.push(`${label} must specify a known 'data_type', got '${tensor.dataType}'`);
    }
    const impossible = tensor.dims.find((dim) => !Number.isSafeInteger(dim) || dim < -1 || dim === 0);
    if (impossible !== undefined) {
      problems.push(
        `${label} dimension must be integer >= 1, or -1 to indicate a variable-size dimension, got ${impossible}`,
      );
    } else if (!countable(tensor.dims)) {
      problems.push(`${label} has more elements than can be counted: [${tensor.dims.join(",")}]`);
    }
  }
}

function countable(dims: readonly number[]): boolean {
  try {
    elementCount(dims.filter((dim) => dim !== -1));
    return true;
  } catch {
    return false;
  }
}

function checkInstanceGroups(config: ModelConfig, problems: string[]): void {
  for (const { name, kind, count, gpus } of config.instanceGroup) {
    const group = `instance group ${name} of model ${config.name}`;
    if (!Number.isInteger(count) || count < 1)
      problems.push(`${group} must have a count of at least 1, got ${count}`);
    if (kind !== "KIND_GPU" && kind !== "KIND_AUTO" && gpus.length > 0) {
      problems.push(`${group} has kind ${kind} but specifies one or more GPUs`);
    }
    const invalid = gpus.find((gpu) => !Number.isInteger(gpu) || gpu < 0);
    if (invalid !== undefined) problems.push(`${group} specifies invalid or unsupported gpu id ${invalid}`);
  }
}

function checkDynamicBatching(config: ModelConfig, batching: ModelDynamicBatching, problems: string[]): void {
  for (const size of batching.preferredBatchSize) {
    if (!Number.isInteger(size) || size <= 0) {
      problems.push(`dynamic batching preferred size must be positive for ${config.name}`);
    } else if (size > config.maxBatchSize) {
      problems.push(`dynamic batching preferred size must be <= max batch size for ${config.name}`);
    }
  }
  if (!Number.isFinite(batching.maxQueueDelayMicroseconds) || batching.maxQueueDelayMicroseconds < 0) {
    problems.push(
      `dynamic batching max queue delay must be a number of microseconds >= 0 for ${config.name}`,
    );
  }
  checkPriorities(config.name, batching, problems);
}

function checkPriorities(model: string, batching: ModelDynamicBatching, problems: string[]): void {
  const { priorityLevels, defaultPriorityLevel, preserveOrdering, priorityQueuePolicy } = batching;
  const policies = [batching.defaultQueuePolicy, ...Object.values(priorityQueuePolicy)];
  if (priorityLevels > 0 && !(defaultPriorityLevel >= 1 && defaultPriorityLevel <= priorityLevels)) {
    problems.push(`default priority level must be in range [1, ${priorityLevels}] for ${model}`);
  }
  if (
    Object.keys(priorityQueuePolicy).some((level) => !(Number(level) >= 1 && Number(level) <= priorityLevels))
  ) {
    problems.push(
      `priority queue policy must have priority level in range [1, ${priorityLevels}] for ${model}`,
    );
  }
  if (preserveOrdering && priorityLevels > 1) {
    problems.push(`Only one priority level is allowed when 'preserve_ordering' is true for ${model}`);
  }
  if (preserveOrdering && policies.some((policy) => policy?.timeoutAction === "DELAY")) {
    problems.push(
      `Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for ${model}`,
    );
  }
}
