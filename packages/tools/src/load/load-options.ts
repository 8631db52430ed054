import { availableParallelism } from "node:os";
import { invalidOption } from "../data/invalid-option.js";
import type { SequenceLoad } from "./sequence-load.js";

/** Options of a load generator. */
export interface LoadOptions {
  /** Threads that send; 0 sends from this thread. @default half of the cores, at least 1 and at most 8 */
  readonly threads?: number;
  /** Seed of random gaps, sequences and fresh data. @default 0 */
  readonly seed?: number;
  /** Records the time of each response. @default false */
  readonly keepResponses?: boolean;
  /** Records the outputs of each response as JSON text; implies `keepResponses`. @default false */
  readonly keepOutputs?: boolean;
  /** Time limit of each request in milliseconds, from its scheduled time. @default none */
  readonly timeoutMs?: number;
  readonly sequences?: SequenceLoad;
}

/** One core sends what one to three others serve, so a machine that also runs the server keeps cores for it. */
export const defaultThreads = (cores = availableParallelism()): number =>
  Math.min(8, Math.max(1, Math.floor(cores / 2)));

/** @throws TritonError INVALID_ARG for an option out of its range. */
export function checkLoadOptions({ threads, seed, timeoutMs }: LoadOptions): void {
  if (threads !== undefined && !(Number.isSafeInteger(threads) && threads >= 0 && threads <= 256))
    throw invalidOption(`threads: expected a whole number from 0 to 256, got ${threads}`);
  if (seed !== undefined && !Number.isSafeInteger(seed))
    throw invalidOption(`seed: expected a whole number, got ${seed}`);
  if (timeoutMs !== undefined && !(timeoutMs > 0 && Number.isFinite(timeoutMs)))
    throw invalidOption(`request timeout: expected milliseconds above 0, got ${timeoutMs}`);
}
