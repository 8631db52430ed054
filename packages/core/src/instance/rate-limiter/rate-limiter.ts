import type { PlannedInstance } from "../../config/placement/instances.js";
import { demandOf, type RateLimitResource, ResourcePools } from "./resource-pools.js";

/** An instance as the rate limiter knows it. */
export interface RateLimitedInstance {
  readonly demand: ReturnType<typeof demandOf>;
  readonly priority: number;
  /** Executions so far, of which loading it is the first, as in Triton. */
  executions: number;
  /** Called when the instance may run. */
  granted: () => void;
}

/**
 * Triton's rate limiter: instances of all models that want to run stand in one line, and run when the resources that
 * they need are free.
 *
 * ```
 * a payload waits, an instance is idle --> [staged instances] --least executions * priority, if its resources are free--> runs
 *                                                  ^                                                                       |
 *                                                  +------------------------- a payload waits -----------------------------+
 * ```
 *
 * Only the first of the line is looked at, once for each instance that joins it or is done: one that needs much is not
 * overtaken by those that need little.
 */
export class RateLimiter {
  readonly #pools: ResourcePools;
  readonly #staged: RateLimitedInstance[] = [];

  /**
   * @param resources pieces of each resource; without any, as many as the neediest instance takes
   * @param onLimits is told how many pieces there are, whenever instances have come or gone
   */
  constructor(resources: readonly RateLimitResource[] = [], onLimits?: (text: string) => void) {
    this.#pools = new ResourcePools(resources, onLimits);
  }

  /**
   * Takes an instance in.
   *
   * @throws TritonError INVALID_ARG when its resources do not exist
   */
  register(planned: PlannedInstance): RateLimitedInstance {
    const demand = demandOf(planned);
    this.#pools.add(demand);
    const priority = Math.max(1, planned.group.rateLimiter?.priority ?? 0);
    return { demand, priority, executions: 1, granted: () => {} };
  }

  /** The instance is gone. */
  unregister(instance: RateLimitedInstance): void {
    this.unstage(instance);
    this.#pools.remove(instance.demand);
  }

  /** An idle instance wants to run; it may be granted within this call. */
  stage(instance: RateLimitedInstance): void {
    this.#staged.push(instance);
    this.#grantFirst();
  }

  /** The instance does not want to run any more. */
  unstage(instance: RateLimitedInstance): void {
    const at = this.#staged.indexOf(instance);
    if (at >= 0) this.#staged.splice(at, 1);
  }

  /**
   * The instance is done. `restage` stages it again when there is more for it to do, before others get what it had.
   *
   * @param ran false when there was nothing to run after all
   */
  release(instance: RateLimitedInstance, restage: () => void, ran = true): void {
    if (ran) instance.executions++;
    this.#pools.release(instance.demand);
    restage();
    this.#grantFirst();
  }

  /** The instance whose turn it is: the one that ran least for its priority, and of several the first. */
  static first<T extends { readonly lease?: RateLimitedInstance | undefined }>(
    instances: readonly T[],
  ): T | undefined {
    let first = instances[0];
    for (const one of instances) if (turnOf(one.lease) < turnOf(first?.lease)) first = one;
    return first;
  }

  #grantFirst(): void {
    let first = this.#staged[0];
    if (first === undefined) return;
    for (const one of this.#staged) if (turnOf(one) < turnOf(first)) first = one;
    if (!this.#pools.allocate(first.demand)) return;
    this.unstage(first);
    first.granted();
  }
}

function turnOf(instance: RateLimitedInstance | undefined): number {
  return instance === undefined ? 0 : instance.executions * instance.priority;
}
