import { TritonError } from "../errors/triton-error.js";
import type { ModelInstance } from "./model-instance.js";
import type { RateLimiter } from "./rate-limiter/rate-limiter.js";

/** Loads instances and releases them, with their place at the rate limiter. */
export class InstanceLoader {
  readonly #limiter: RateLimiter | undefined;
  readonly #loading = new Set<ModelInstance>();
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
    this.#loading.add(instance);
    try {
      if (this.#limiter !== undefined && !instance.passive) {
        instance.lease = this.#limiter.register(instance.placement);
      }
      await instance.executor.start();
      if (this.#stopped) throw new TritonError("UNAVAILABLE", "the model was stopped while it loaded");
    } catch (error) {
      await this.release(instance);
      throw error;
    } finally {
      this.#loading.delete(instance);
    }
  }

  /** Stops an instance, and gives back what it had of the rate limiter. */
  async release(instance: ModelInstance): Promise<void> {
    if (instance.lease !== undefined) this.#limiter?.unregister(instance.lease);
    instance.lease = undefined;
    await instance.executor.stop();
  }

  /** Releases these instances and all that load, and lets none be loaded any more. */
  async stop(instances: readonly ModelInstance[]): Promise<void> {
    this.#stopped = true;
    await Promise.all([...instances, ...this.#loading].map((instance) => this.release(instance)));
  }
}
