import type { Frontend } from "@tritonjs/core";
import type { FrontendAddress, InferenceService } from "@tritonjs/core/frontend";
import type { ThreadPool } from "./thread-pool.js";

/** A frontend that runs in the threads of a pool. */
export class PooledFrontend implements Frontend {
  readonly name: string;
  readonly #frontend: Frontend;
  readonly #pool: ThreadPool;
  #isOpen = false;
  #stopping: Promise<void> | undefined;

  constructor(frontend: Frontend, pool: ThreadPool) {
    this.name = frontend.name;
    this.#frontend = frontend;
    this.#pool = pool;
  }

  async start(service: InferenceService): Promise<FrontendAddress> {
    this.#isOpen = true;
    this.#stopping = undefined;
    const { module, name, options, listening, startError } = this.#frontend.threaded!;
    try {
      return await this.#pool.open(this.name, { module, name, options, listening }, service);
    } catch (failure) {
      throw startError?.(failure) ?? failure;
    }
  }

  leave(): void {
    this.#pool.leave(this.name);
  }

  settle(): Promise<void> {
    return this.#pool.settle(this.name);
  }

  stop(drainTimeoutMs?: number): Promise<void> {
    if (!this.#isOpen) return Promise.resolve();
    this.#stopping ??= this.#pool.stop(this.name, drainTimeoutMs);
    return this.#stopping;
  }
}
