import { TritonError } from "@tritonjs/protocol";
import type { ModelInstance } from "./model-instance.js";
import type { RateLimiter } from "./rate-limiter/rate-limiter.js";

/** Loads and releases instances, including their registration at the rate limiter. */
export class InstanceLoader {
  readonly #limiter: RateLimiter | undefined;
  /** Instances that are loading or loaded, until they are released. */
  readonly #held = new Set<ModelInstance>();
  #stopped = false;

  constructor(limiter: RateLimiter | undefined) {
    this.#limiter = limiter;
  }

  /** True once `stop` has been called. */
  get stopped(): boolean {
    return this.#stopped;
  }

  /** Loads an instance; releases its resources if loading fails. */
  async load(instance: ModelInstance): Promise<void> {
    this.#assertOpen();
    this.#held.add(instance);
    try {
      if (this.#limiter !== undefined && !instance.passive) {
        instance.lease = this.#limiter.register(instance.placement);
      }
      await instance.executor.start();
      this.#assertOpen();
    } catch (error) {
      await this.release(instance);
      throw error;
    }
  }

  /** Loads instances. Rejects with the first failure, after the others have been stopped. */
  async loadAll(instances: readonly ModelInstance[]): Promise<void> {
    const results = await Promise.allSettled(instances.map((instance) => this.load(instance)));
    const failed = results.find((result) => result.status === "rejected");
    if (failed === undefined) return;
    await this.stop();
    throw TritonError.from(failed.reason);
  }

  /** Stops an instance, and ends its registration at the rate limiter. */
  async release(instance: ModelInstance): Promise<void> {
    if (instance.lease !== undefined) this.#limiter?.unregister(instance.lease);
    instance.lease = undefined;
    await instance.executor.stop();
    this.#held.delete(instance);
  }

  /** Releases all instances that are loading or loaded, and allows no more loading. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all([...this.#held].map((instance) => this.release(instance)));
  }

  #assertOpen(): void {
    if (this.#stopped)
      throw new TritonError("UNAVAILABLE", "the model was stopped while it was loading", {
        reason: "MODEL_STOPPED",
      });
  }
}
