import { TritonError } from "@tritonjs/protocol";
import type { PlannedInstance } from "../../config/placement/instances.js";

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

/** Resources that an instance needs while it runs. Instances on the CPU use the resources of device 0, as in Triton. */
export function demandOf({ deviceId, group }: PlannedInstance): Pieces {
  const demand = new Map<Device, Map<string, number>>();
  for (const { name, count, global } of group.rateLimiter?.resources ?? []) {
    const device = global ? GLOBAL : deviceId;
    demand.set(device, (demand.get(device) ?? new Map<string, number>()).set(name, count));
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

  /** @param onLimits called with the amounts, in Triton's words, whenever demands are added or removed */
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

  /** Removes the demand of an instance. */
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

  /** Returns the resources of a demand. */
  release(demand: Pieces): void {
    this.#change(demand, -1);
  }

  #update(): void {
    this.#limits = this.#computeLimits();
    this.onLimits(limitsText(this.#limits));
  }

  #change(demand: Pieces, sign: 1 | -1): void {
    for (const [device, resources] of demand) {
      const taken = this.#taken.get(device) ?? new Map<string, number>();
      this.#taken.set(device, taken);
      for (const [name, count] of resources) taken.set(name, (taken.get(name) ?? 0) + sign * count);
    }
  }

  #computeLimits(): Pieces {
    const limits = new Map<Device, Map<string, number>>();
    for (const demand of this.#demands) {
      for (const [device, resources] of demand) {
        const most = limits.get(device) ?? new Map<string, number>();
        limits.set(device, most);
        for (const [name, count] of resources) most.set(name, Math.max(most.get(name) ?? 0, count));
      }
    }
    if (this.#given.length > 0) this.#limitToGiven(limits);
    for (const name of limits.get(GLOBAL)?.keys() ?? []) {
      if ([...limits].some(([device, resources]) => device !== GLOBAL && resources.has(name))) {
        throw new TritonError(
          "INVALID_ARG",
          `Resource "${name}" is present as both global and device-specific resource in the model configuration.`,
          { reason: "INVALID_CONFIG" },
        );
      }
    }
    return limits;
  }

  #limitToGiven(limits: Map<Device, Map<string, number>>): void {
    for (const [device, resources] of limits) {
      for (const [name, needed] of resources) {
        const counts = this.#given
          .filter((one) => one.name === name)
          // A global resource has the amount given under its name, for any device.
          .filter((one) => device === GLOBAL || one.device === undefined || one.device === device)
          .map((one) => one.count);
        const count = Math.max(0, ...counts);
        if (count < needed) {
          throw new TritonError(
            "INVALID_ARG",
            `Resource count for "${name}" is limited to ${count} which will prevent scheduling of one or more model ` +
              `instances, the minimum required count is ${needed}`,
            { reason: "INVALID_CONFIG" },
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
