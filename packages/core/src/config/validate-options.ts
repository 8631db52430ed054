import {
  BATCHER_OPTION_KEYS,
  INSTANCE_GROUP_OPTION_KEYS,
  type InstanceGroupOptions,
  MODEL_OPTION_KEYS,
  type ModelOptions,
  QUEUE_POLICY_OPTION_KEYS,
} from "./model-options.js";
import { SEQUENCE_CONTROL_KEYS, SEQUENCE_OPTION_KEYS, type SequenceOptions } from "./sequence-options.js";

/** What is wrong with the options themselves, before they are resolved: unknown names and contradictions. */
export function validateOptions(options: ModelOptions): string[] {
  const problems = unknownKeys("config", options, MODEL_OPTION_KEYS);
  if (options.batching === false) {
    if (options.maxBatchSize !== undefined && options.maxBatchSize !== 0) {
      problems.push(`config.maxBatchSize is ${options.maxBatchSize} but config.batching is false`);
    }
    if (options.batcher !== undefined && options.batcher !== false) {
      problems.push("config.batcher is given but config.batching is false");
    }
  }
  if (options.batching === true && options.maxBatchSize === 0) {
    problems.push("config.maxBatchSize is 0 but config.batching is true");
  }
  if (options.batcher !== undefined && options.batcher !== false) {
    problems.push(...unknownKeys("config.batcher", options.batcher, BATCHER_OPTION_KEYS));
    const { defaultQueuePolicy = {}, priorityQueuePolicy = {} } = options.batcher;
    for (const policy of [defaultQueuePolicy, ...Object.values(priorityQueuePolicy)]) {
      problems.push(...unknownKeys("a queue policy of config.batcher", policy, QUEUE_POLICY_OPTION_KEYS));
    }
  }
  if (options.sequence !== undefined) problems.push(...sequenceProblems(options.sequence, options.batcher));
  const groups = options.instanceGroup ?? [];
  for (const group of Array.isArray(groups) ? (groups as readonly InstanceGroupOptions[]) : [groups]) {
    problems.push(...unknownKeys("config.instanceGroup", group, INSTANCE_GROUP_OPTION_KEYS));
  }
  return problems;
}

function sequenceProblems(sequence: SequenceOptions, batcher: ModelOptions["batcher"]): string[] {
  const problems = [
    ...unknownKeys("config.sequence", sequence, SEQUENCE_OPTION_KEYS),
    ...unknownKeys("config.sequence.controls", sequence.controls ?? {}, SEQUENCE_CONTROL_KEYS),
  ];
  const { strategy = "oldest" } = sequence;
  if (strategy !== "oldest" && strategy !== "direct") {
    problems.push(`config.sequence.strategy must be 'oldest' or 'direct', got '${String(strategy)}'`);
  }
  const others: readonly (keyof SequenceOptions)[] =
    strategy === "direct"
      ? ["maxCandidateSequences", "preferredBatchSize", "preserveOrdering"]
      : ["minimumSlotUtilization"];
  for (const key of others) {
    if (sequence[key] !== undefined)
      problems.push(`config.sequence.${key} means nothing to strategy '${strategy}'`);
  }
  if (batcher !== undefined && batcher !== false) {
    problems.push("config.batcher and config.sequence are both given: a model has one scheduler");
  }
  return problems;
}

/** One line for each key of `value` that is not among `known`. */
export function unknownKeys(where: string, value: object, known: readonly string[]): string[] {
  return Object.keys(value)
    .filter((key) => !known.includes(key))
    .map((key) => `${where} has an unknown option '${key}'; known are ${known.join(", ")}`);
}
