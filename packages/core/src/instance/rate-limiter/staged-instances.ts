import type { ModelInstance } from "../model-instance.js";
import { RateLimiter } from "./rate-limiter.js";

/** The instances of one model that stand in the rate limiter's line: one for each payload that waits. */
export class StagedInstances {
  readonly #staged = new Set<ModelInstance>();

  /** @param run has an instance take a payload; false when there was none any more */
  constructor(
    private readonly limiter: RateLimiter,
    private readonly waiting: () => number,
    private readonly run: (instance: ModelInstance) => boolean,
  ) {}

  /** Puts an idle instance into the line for each payload that none stands there for. */
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

  /** Takes an instance out of the line. */
  unstage(instance: ModelInstance): void {
    if (this.#staged.delete(instance) && instance.lease !== undefined) this.limiter.unstage(instance.lease);
  }
}
