import type { ModelConfig, ModelDynamicBatching, ModelQueuePolicy } from "@tritonjs/protocol";

/** Lists all problems with the dynamic batching of a configuration, with Triton's texts. */
export function dynamicBatchingProblems(
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
