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

/** Number of requests that a level has room for; infinite without a limit. */
export function placesLeft({ maxQueueSize }: ModelQueuePolicy, size: number): number {
  return maxQueueSize > 0 ? Math.max(0, maxQueueSize - size) : Number.POSITIVE_INFINITY;
}

/**
 * Number of requests that the level of this priority has room for; without a priority, that the level with the most
 * room has.
 *
 * @param sizeOf returns the number of waiting requests of a level
 */
export function freePlacesOf(
  batching: ModelDynamicBatching,
  sizeOf: (level: number) => number,
  priority?: number,
): number {
  const placesOf = (level: number) => placesLeft(policyOf(batching, level), sizeOf(level));
  if (priority !== undefined) return placesOf(levelOf(batching, priority));
  const { priorityLevels } = batching;
  let most = 0;
  for (let level = Math.min(1, priorityLevels); level <= priorityLevels; level++) {
    most = Math.max(most, placesOf(level));
  }
  return most;
}
