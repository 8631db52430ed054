import type { Frontend } from "@tritonjs/core";
import { PooledFrontend } from "./pooled-frontend.js";
import { ThreadPool } from "./thread-pool.js";

/**
 * Moves frontends to worker threads: those of `http()` and `grpc()` whose options can be sent to a thread. All threads
 * run all of these frontends. Others stay as they are, and come first.
 *
 * `serve()` calls it for the option `frontendThreads`.
 *
 * @param count number of threads, at least 1
 * @returns the frontends in the order in which they are to be opened
 * @example
 * ```ts
 * await triton.serve({ frontends: inThreads([http({ port: 8000 }), grpc({ port: 8001 })], 2) });
 * ```
 */
export function inThreads(frontends: readonly Frontend[], count: number): Frontend[] {
  const pool = new ThreadPool(count);
  const stays = frontends.filter(({ threaded }) => threaded === undefined);
  const moves = frontends.filter(({ threaded }) => threaded !== undefined);
  return [...stays, ...moves.map((frontend) => new PooledFrontend(frontend, pool))];
}
