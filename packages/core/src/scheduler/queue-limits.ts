import type { ModelDynamicBatching, ModelQueuePolicy } from "@tritonjs/protocol";
import { defaultQueuePolicy } from "../config/schema/defaults.js";

/** The level of requests with this priority; 0 for a queue without levels. */
export function levelOf(
  { priorityLevels, defaultPriorityLevel }: ModelDynamicBatching,
  priority: number,
): number {
  if (priorityLevels === 0) return 0;
  return priority >= 1 && priority <= priorityLevels ? priority : defaultPriorityLevel;
}

/** The queue policy of a level. */
export function policyOf(batching: ModelDynamicBatching, level: number): ModelQueuePolicy {
  return batching.priorityQueuePolicy[level] ?? batching.defaultQueuePolicy ?? defaultQueuePolicy();
}

/** True if a policy of the queue limits the number of waiting requests. Most queues have no limit. */
export function isBounded({
  defaultQueuePolicy: byDefault,
  priorityQueuePolicy,
}: ModelDynamicBatching): boolean {
  const policies = [...Object.values(priorityQueuePolicy), ...(byDefault === undefined ? [] : [byDefault])];
  return policies.some(({ maxQueueSize }) => maxQueueSize > 0);
}

/** True if a level with this number of waiting requests is full. */
export function isLevelFull({ maxQueueSize }: ModelQueuePolicy, size: number): boolean {
  return maxQueueSize > 0 && size >= maxQueueSize;
}

/**
 * True if the level of this priority is full; without a priority, if all levels are.
 *
 * @param sizeOf returns the number of waiting requests of a level
 */
export function isQueueFull(
  batching: ModelDynamicBatching,
  sizeOf: (level: number) => number,
  priority?: number,
): boolean {
  const isFull = (level: number) => isLevelFull(policyOf(batching, level), sizeOf(level));
  if (priority !== undefined) return isFull(levelOf(batching, priority));
  const { priorityLevels } = batching;
  for (let level = Math.min(1, priorityLevels); level <= priorityLevels; level++) {
    if (!isFull(level)) return false;
  }
  return true;
}
