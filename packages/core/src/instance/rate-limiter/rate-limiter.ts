import type { PlannedInstance } from "../../config/placement/instances.js";
import { demandOf, type RateLimitResource, ResourcePools } from "./resource-pools.js";

/** An instance in the rate limiter. */
export interface RateLimitedInstance {
  readonly demand: ReturnType<typeof demandOf>;
  readonly priority: number;
  /** Number of executions so far. Loading counts as the first, as in Triton. */
  executions: number;
  /** Called when the instance may run. */
  granted: () => void;
}

/**
 * Triton's rate limiter. Instances of all models that want to run wait in one queue, and run when their resources are
 * free.
 *
 * ```
 * a payload waits, an instance is idle --> [staged instances] --least executions * priority, if its resources are free--> runs
 *                                                  ^                                                                       |
 *                                                  +------------------------- a payload waits -----------------------------+
 * ```
 *
 * Only the first of the queue is examined, each time an instance is staged or finishes. So an instance that needs many
 * resources is not overtaken by instances that need few.
 */
export class RateLimiter {
  readonly #pools: ResourcePools;
  readonly #staged: RateLimitedInstance[] = [];

  /**
   * @param resources amount of each resource; by default, the largest amount that any instance needs
   * @param onLimits called with the amounts whenever instances are added or removed
   */
  constructor(resources: readonly RateLimitResource[] = [], onLimits?: (text: string) => void) {
    this.#pools = new ResourcePools(resources, onLimits);
  }

  /**
   * Registers an instance.
   *
   * @throws TritonError INVALID_ARG if its resources do not exist
   */
  register(planned: PlannedInstance): RateLimitedInstance {
    const demand = demandOf(planned);
    this.#pools.add(demand);
    const priority = Math.max(1, planned.group.rateLimiter?.priority ?? 0);
    return { demand, priority, executions: 1, granted: () => {} };
  }

  /** Removes an instance. */
  unregister(instance: RateLimitedInstance): void {
    this.unstage(instance);
    this.#pools.remove(instance.demand);
  }

  /** Puts an idle instance into the queue; it may be granted within this call. */
  stage(instance: RateLimitedInstance): void {
    this.#staged.push(instance);
    this.#grantFirst();
  }

  /** Removes an instance from the queue. */
  unstage(instance: RateLimitedInstance): void {
    const at = this.#staged.indexOf(instance);
    if (at >= 0) this.#staged.splice(at, 1);
  }

  /**
   * Releases the resources of an instance that has finished. `restage` stages it again if there is more work, before
   * others get the resources.
   *
   * @param ran false if there was no payload left to run
   */
  release(instance: RateLimitedInstance, restage: () => void, ran = true): void {
    if (ran) instance.executions++;
    this.#pools.release(instance.demand);
    restage();
    this.#grantFirst();
  }

  /** The instance whose turn it is: the one with the fewest executions for its priority; the first of equal ones. */
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
