import { errorFor } from "@tritonjs/protocol";
import type { PlannedInstance } from "../config/instance-groups.js";
import type { Log } from "../observe/log.js";
import { getOrAdd } from "../system/collections.js";

export interface RateLimitedInstance {
  readonly demand: ResourceDemand;
  readonly priority: number;
  /** Number of executions so far. Loading and warm-up count as the first two, as in Triton. */
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

  register(planned: PlannedInstance): RateLimitedInstance {
    const demand = demandOf(planned);
    this.#pools.add(demand);
    const priority = Math.max(1, planned.group.rateLimiter?.priority ?? 0);
    return { demand, priority, executions: 2, granted: () => {} };
  }

  unregister(instance: RateLimitedInstance): void {
    this.unstage(instance);
    this.#pools.remove(instance.demand);
  }

  /** Puts an idle instance into the queue; it may be granted within this call. */
  stage(instance: RateLimitedInstance): void {
    this.#staged.push(instance);
    this.#grantFirst();
  }

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

/** One resource with a fixed amount of units. */
export interface RateLimitResource {
  readonly name: string;
  readonly count: number;
  /** Device of the resource, or "global". @default the same amount for each device */
  readonly device?: number | "global";
}

/** Device name of resources that all devices share. */
const GLOBAL = "global";

type Device = number | typeof GLOBAL;

/** Amounts by device, then by resource. */
type Pieces = ReadonlyMap<Device, ReadonlyMap<string, number>>;

/** Resources that an instance takes while it runs. */
export type ResourceDemand = Pieces;

/** Resources that an instance needs while it runs. Instances on the CPU use the resources of device 0, as in Triton. */
export function demandOf({ deviceId, group }: PlannedInstance): Pieces {
  const demand = new Map<Device, Map<string, number>>();
  for (const { name, count, global } of group.rateLimiter?.resources ?? []) {
    const device = global ? GLOBAL : deviceId;
    getOrAdd(demand, device, () => new Map<string, number>()).set(name, count);
  }
  return demand;
}

/**
 * The resources that instances share. By default, the amount of each is the largest that any instance needs. If amounts
 * are given, only the given resources exist.
 */
export class ResourcePools {
  readonly #given: readonly RateLimitResource[];
  readonly #demands = new Set<Pieces>();
  readonly #taken = new Map<Device, Map<string, number>>();
  #limits: Pieces = new Map();

  /**
   * @param onLimits called with the amounts, in Triton's words, whenever demands are added or removed
   */
  constructor(
    given: readonly RateLimitResource[] = [],
    private readonly onLimits: (text: string) => void = () => {},
  ) {
    this.#given = given;
  }

  /**
   * Adds the demand of an instance.
   *
   * @throws TritonError INVALID_ARG if it can never be met, or a resource is both global and of a device
   */
  add(demand: Pieces): void {
    this.#demands.add(demand);
    try {
      this.#update();
    } catch (error) {
      this.remove(demand);
      throw error;
    }
  }

  remove(demand: Pieces): void {
    this.#demands.delete(demand);
    this.#update();
  }

  /** Takes all resources of a demand, or none. */
  allocate(demand: Pieces): boolean {
    for (const [device, resources] of demand) {
      for (const [name, count] of resources) {
        const taken = this.#taken.get(device)?.get(name) ?? 0;
        if (taken + count > (this.#limits.get(device)?.get(name) ?? 0)) return false;
      }
    }
    this.#change(demand, 1);
    return true;
  }

  release(demand: Pieces): void {
    this.#change(demand, -1);
  }

  #update(): void {
    this.#limits = this.#computeLimits();
    this.onLimits(limitsText(this.#limits));
  }

  #change(demand: Pieces, sign: 1 | -1): void {
    for (const [device, resources] of demand) {
      const taken = getOrAdd(this.#taken, device, () => new Map<string, number>());
      for (const [name, count] of resources) taken.set(name, (taken.get(name) ?? 0) + sign * count);
    }
  }

  #computeLimits(): Pieces {
    const limits = new Map<Device, Map<string, number>>();
    for (const demand of this.#demands) {
      for (const [device, resources] of demand) {
        const most = getOrAdd(limits, device, () => new Map<string, number>());
        for (const [name, count] of resources) most.set(name, Math.max(most.get(name) ?? 0, count));
      }
    }
    this.#limitToGiven(limits);
    for (const name of limits.get(GLOBAL)?.keys() ?? []) {
      if ([...limits].some(([device, resources]) => device !== GLOBAL && resources.has(name))) {
        throw errorFor(
          "INVALID_CONFIG",
          `Resource "${name}" is present as both global and device-specific resource in the model configuration.`,
        );
      }
    }
    return limits;
  }

  #limitToGiven(limits: Map<Device, Map<string, number>>): void {
    if (this.#given.length === 0) return;
    for (const [device, resources] of limits) {
      for (const [name, needed] of resources) {
        const counts = this.#given
          .filter((one) => one.name === name)
          // A global resource has the amount given under its name, for any device.
          .filter((one) => device === GLOBAL || one.device === undefined || one.device === device)
          .map((one) => one.count);
        const count = Math.max(0, ...counts);
        if (count < needed) {
          throw errorFor(
            "INVALID_CONFIG",
            `Resource count for "${name}" is limited to ${count} which will prevent scheduling of one or more model ` +
              `instances, the minimum required count is ${needed}`,
          );
        }
        resources.set(name, count);
      }
    }
  }
}

/** Text of the amounts of all resources, as in Triton's log. */
function limitsText(limits: Pieces): string {
  const lines = ["Max Resource Map===>"];
  for (const [device, resources] of [...limits].sort(([a], [b]) => place(a) - place(b))) {
    lines.push(`\tDevice: ${device === GLOBAL ? "GLOBAL" : device}`);
    const names = [...resources].sort(([a], [b]) => (a < b ? -1 : 1));
    for (const [name, count] of names) lines.push(`\t\tResource: ${name}\t Count: ${count}`);
  }
  return `${lines.join("\n")}\n`;
}

/** Sort order: global resources come before those of devices. */
function place(device: Device): number {
  return device === GLOBAL ? Number.NEGATIVE_INFINITY : device;
}

/**
 * Creates the rate limiter that the options ask for; undefined if it is off.
 *
 * @param log receives the amounts of all resources whenever they change, at verbose level 1
 * @throws TritonError INVALID_ARG for invalid options
 */
export function createRateLimiter(
  mode: "execution_count" | "off" = "off",
  resources: readonly RateLimitResource[] = [],
  log?: Log,
): RateLimiter | undefined {
  if (mode !== "execution_count" && mode !== "off") {
    throw errorFor("INVALID_OPTION", `rateLimit: expected 'execution_count' or 'off', got '${String(mode)}'`);
  }
  const wrong = resources.find(({ count }) => !Number.isSafeInteger(count) || count < 0);
  if (wrong !== undefined) {
    throw errorFor(
      "INVALID_OPTION",
      `rateLimitResources: expected a non-negative integer as the count of '${wrong.name}', got ${wrong.count}`,
    );
  }
  return mode === "off" ? undefined : new RateLimiter(resources, (text) => log?.verbose(1, text));
}
