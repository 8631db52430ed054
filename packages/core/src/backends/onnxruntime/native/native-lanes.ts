import { ConcurrencyGate } from "@tritonjs/protocol";

/** Threads of libuv's pool. Node reads the variable when the program starts. */
const POOL_SIZE = Math.max(1, Number(process.env.UV_THREADPOOL_SIZE) || 4);

/** Threads of the pool that runs of models leave to others: one for files and names, one for loading models. */
const KEPT_FREE = 2;

/**
 * Number of batches that run at a time, of all models together. The threads of libuv's pool run them, as they also read
 * files and look up names. An operator still uses all threads of its session.
 */
export const PARALLEL_RUNS: number = Math.max(1, POOL_SIZE - KEPT_FREE);

const unlimited = Number.POSITIVE_INFINITY;

/** Runs of models, in the order in which they begin to wait. */
export const runLane = new ConcurrencyGate(PARALLEL_RUNS, unlimited);

/** Opening and closing sessions, one at a time, so that a large model delays no batch. */
export const loadLane = new ConcurrencyGate(1, unlimited);
