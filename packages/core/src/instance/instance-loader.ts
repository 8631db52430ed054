import { TritonError } from "@tritonjs/protocol";
import type { ModelInstance } from "./model-instance.js";
import type { RateLimiter } from "./rate-limiter/rate-limiter.js";

/** Loads instances and releases them, with their place at the rate limiter. */
export class InstanceLoader {
  readonly #limiter: RateLimiter | undefined;
  /** Those that load or have been loaded, until they are released. */
  readonly #held = new Set<ModelInstance>();
  #stopped = false;

  constructor(limiter: RateLimiter | undefined) {
    this.#limiter = limiter;
  }

  /** True once `stop` has been called. */
  get stopped(): boolean {
    return this.#stopped;
  }

  /** Loads an instance; releases what it has when that fails. */
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

  /** Stops an instance, and gives back what it had of the rate limiter. */
  async release(instance: ModelInstance): Promise<void> {
    if (instance.lease !== undefined) this.#limiter?.unregister(instance.lease);
    instance.lease = undefined;
    await instance.executor.stop();
    this.#held.delete(instance);
  }

  /** Releases all instances that load or are loaded, and lets none be loaded any more. */
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
