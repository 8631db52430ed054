import { TritonError } from "@tritonjs/protocol";
import type { PlannedInstance } from "../../config/placement/instances.js";

/** One resource of which there is a fixed number of pieces. */
export interface RateLimitResource {
  readonly name: string;
  readonly count: number;
  /** The device whose resource it is, or "global". @default each device has as many */
  readonly device?: number | "global";
}

/** The device of resources that all devices share. */
const GLOBAL = "global";

type Device = number | typeof GLOBAL;

/** Pieces by resource by device. */
type Pieces = ReadonlyMap<Device, ReadonlyMap<string, number>>;

/** What an instance needs while it runs. Instances on the CPU use the resources of device 0, as in Triton. */
export function demandOf({ deviceId, group }: PlannedInstance): Pieces {
  const demand = new Map<Device, Map<string, number>>();
  for (const { name, count, global } of group.rateLimiter?.resources ?? []) {
    const device = global ? GLOBAL : deviceId;
    demand.set(device, (demand.get(device) ?? new Map<string, number>()).set(name, count));
  }
  return demand;
}

/**
 * The resources that instances share. There are as many pieces as the neediest instance takes, or as many as were
 * given; then what was not given does not exist.
 */
export class ResourcePools {
  readonly #given: readonly RateLimitResource[];
  readonly #demands = new Set<Pieces>();
  readonly #taken = new Map<Device, Map<string, number>>();
  #limits: Pieces = new Map();

  /** @param onLimits is told how many pieces there are, in Triton's words, whenever demands have come or gone */
  constructor(
    given: readonly RateLimitResource[] = [],
    private readonly onLimits: (text: string) => void = () => {},
  ) {
    this.#given = given;
  }

  /**
   * Takes in what an instance will need.
   *
   * @throws TritonError INVALID_ARG when it could never run, and when a resource is global and a device's at once
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

  /** The instance is gone. */
  remove(demand: Pieces): void {
    this.#demands.delete(demand);
    this.#update();
  }

  /** Takes all pieces of a demand, or none. */
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

  /** Gives the pieces of a demand back. */
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
          // A global resource takes what was given under its name for whatever device.
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

/** The pieces of each resource, as Triton writes them to its log. */
function limitsText(limits: Pieces): string {
  const lines = ["Max Resource Map===>"];
  for (const [device, resources] of [...limits].sort(([a], [b]) => place(a) - place(b))) {
    lines.push(`\tDevice: ${device === GLOBAL ? "GLOBAL" : device}`);
    const names = [...resources].sort(([a], [b]) => (a < b ? -1 : 1));
    for (const [name, count] of names) lines.push(`\t\tResource: ${name}\t Count: ${count}`);
  }
  return `${lines.join("\n")}\n`;
}

/** Global resources come before those of devices. */
function place(device: Device): number {
  return device === GLOBAL ? Number.NEGATIVE_INFINITY : device;
}
