import type { ModelInstance } from "../model-instance.js";
import { RateLimiter } from "./rate-limiter.js";

/** The instances of one model in the rate limiter's queue: one for each waiting payload. */
export class StagedInstances {
  readonly #staged = new Set<ModelInstance>();

  /** @param run runs a payload on an instance; returns false if there was none left */
  constructor(
    private readonly limiter: RateLimiter,
    private readonly waiting: () => number,
    private readonly run: (instance: ModelInstance) => boolean,
  ) {}

  /** Stages idle instances until there is one for each waiting payload. */
  stage(serving: readonly ModelInstance[]): void {
    while (this.#staged.size < this.waiting()) {
      const free = serving.filter((one) => one.room > 0 && !this.#staged.has(one));
      const instance = RateLimiter.first(free);
      const lease = instance?.lease;
      if (instance === undefined || lease === undefined) return;
      this.#staged.add(instance);
      lease.granted = () => {
        this.#staged.delete(instance);
        if (!this.run(instance)) this.limiter.release(lease, () => {}, false);
      };
      this.limiter.stage(lease);
    }
  }

  /** Removes an instance from the queue. */
  unstage(instance: ModelInstance): void {
    if (this.#staged.delete(instance) && instance.lease !== undefined) this.limiter.unstage(instance.lease);
  }
}
