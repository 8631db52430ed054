import { RECYCLE_OPTION_KEYS } from "../options/instance-hosting.js";
import {
  BATCHER_OPTION_KEYS,
  type BatcherOptions,
  INSTANCE_GROUP_OPTION_KEYS,
  type InstanceGroupOptions,
  MODEL_OPTION_KEYS,
  type ModelOptions,
  QUEUE_POLICY_OPTION_KEYS,
  RATE_LIMITER_OPTION_KEYS,
} from "../options/model-options.js";
import {
  SEQUENCE_CONTROL_KEYS,
  SEQUENCE_OPTION_KEYS,
  type SequenceOptions,
} from "../options/sequence-options.js";
import { SEQUENCE_STATE_OPTION_KEYS, sequenceStateProblems } from "../options/sequence-state-options.js";
import { warmupDataProblems } from "../options/warmup-data.js";
import { groupList } from "../placement/instance-groups.js";
import { unknownKeys } from "../schema/unknown-keys.js";

/** Lists problems with the options before they are resolved: unknown names and contradictions. */
export function validateOptions(options: ModelOptions): string[] {
  const problems = unknownKeys("config", options, MODEL_OPTION_KEYS, {
    "config.batcher": BATCHER_OPTION_KEYS,
    "config.sequence": SEQUENCE_OPTION_KEYS,
    "config.instanceGroup": INSTANCE_GROUP_OPTION_KEYS,
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
  if (options.batcher !== undefined && options.batcher !== false) {
    problems.push(...unknownKeys("config.batcher", options.batcher, BATCHER_OPTION_KEYS));
    problems.push(...targetProblems(options.batcher));
    const { defaultQueuePolicy = {}, priorityQueuePolicy = {} } = options.batcher;
    for (const policy of [defaultQueuePolicy, ...Object.values(priorityQueuePolicy)]) {
      problems.push(...unknownKeys("a queue policy of config.batcher", policy, QUEUE_POLICY_OPTION_KEYS));
    }
  }
  if (options.sequence !== undefined) problems.push(...sequenceProblems(options.sequence, options.batcher));
  problems.push(...groupList(options.instanceGroup ?? []).flatMap(instanceGroupProblems));
  problems.push(...warmupDataProblems(options.modelWarmup));
  return problems;
}

/** Lists options that contradict adaptive batching, which decides them by itself. */
function targetProblems(batcher: BatcherOptions): string[] {
  if (batcher.targetLatencyMs === undefined) return [];
  return (["maxQueueDelayMicroseconds", "preferredBatchSize"] as const)
    .filter((key) => batcher[key] !== undefined)
    .map(
      (key) =>
        `config.batcher.${key} and config.batcher.targetLatencyMs are both given: leave one of them out`,
    );
}

function instanceGroupProblems(group: InstanceGroupOptions): string[] {
  const { count, rateLimiter = {}, recycle = {} } = group;
  const where = "config.instanceGroup";
  return [
    ...unknownKeys(where, group, INSTANCE_GROUP_OPTION_KEYS),
    ...unknownKeys(`${where}.rateLimiter`, rateLimiter, RATE_LIMITER_OPTION_KEYS),
    ...unknownKeys(`${where}.recycle`, recycle, RECYCLE_OPTION_KEYS),
    // Triton treats 0 as "not given".
    ...(count === 0 ? [`${where}.count: expected at least 1, got 0`] : []),
  ];
}

function sequenceProblems(sequence: SequenceOptions, batcher: ModelOptions["batcher"]): string[] {
  const problems = [
    ...unknownKeys("config.sequence", sequence, SEQUENCE_OPTION_KEYS),
    ...unknownKeys("config.sequence.controls", sequence.controls ?? {}, SEQUENCE_CONTROL_KEYS),
  ];
  for (const state of sequence.states ?? []) {
    problems.push(...unknownKeys("config.sequence.states", state, SEQUENCE_STATE_OPTION_KEYS));
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
  if (batcher !== undefined && batcher !== false) {
    problems.push(
      "config.batcher and config.sequence are both given, but a model has one scheduler: leave one of them out",
    );
  }
  return problems;
}
