import type { ConcurrencyLevel, ConcurrencyRampLevel } from "./load-level.js";

/** A level that keeps requests in flight. */
export type ConcurrencyGoal = ConcurrencyLevel | ConcurrencyRampLevel;

/** One of the threads that share a level. */
export interface ThreadShare {
  readonly index: number;
  readonly count: number;
}

/** Requests in flight of all threads, `elapsedMs` after the start of the level. */
export function concurrencyAt(level: ConcurrencyGoal, elapsedMs: number): number {
  if (level.mode === "concurrency") return level.value;
  const { from, to, durationMs } = level;
  if (elapsedMs >= durationMs) return to;
  return Math.round(from + ((to - from) * Math.max(0, elapsedMs)) / durationMs);
}

/** Milliseconds from the start at which the concurrency changes next; undefined once it stays. */
export function nextConcurrencyChange(level: ConcurrencyGoal, elapsedMs: number): number | undefined {
  if (level.mode === "concurrency" || elapsedMs >= level.durationMs) return undefined;
  const { from, to, durationMs } = level;
  if (from === to) return undefined;
  const msPerStep = durationMs / Math.abs(to - from);
  return Math.min(durationMs, elapsedMs + msPerStep);
}

/** The part of a whole number that one thread gets. The parts of all threads add up to the number. */
export function shareOf(total: number, { index, count }: ThreadShare): number {
  return Math.floor((total * (index + 1)) / count) - Math.floor((total * index) / count);
}

/**
 * Requests that a thread sends of `count`, in proportion to its part of the concurrency: threads without a part send
 * none.
 */
export function countShare(
  count: number,
  concurrency: number,
  { index, count: threads }: ThreadShare,
): number {
  const before = Math.floor((concurrency * index) / threads);
  const after = Math.floor((concurrency * (index + 1)) / threads);
  return Math.floor((count * after) / concurrency) - Math.floor((count * before) / concurrency);
}
