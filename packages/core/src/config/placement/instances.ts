import type { InstanceKind, ModelConfig, ModelInstanceGroup } from "@tritonjs/protocol";

/** One instance that a configuration asks for. */
export interface InstancePlacement {
  /** Triton's instance name, that of the group with a number: `m_0`, or `m_0_0` in a group that is listed. */
  readonly name: string;
  /** Position among all instances of the model. */
  readonly index: number;
  readonly kind: Exclude<InstanceKind, "KIND_AUTO">;
  /** Number of the GPU; 0 for other kinds. */
  readonly deviceId: number;
}

/** A placement with the group that asks for it. */
export interface PlannedInstance extends InstancePlacement {
  readonly group: ModelInstanceGroup;
}

/**
 * All instances that a configuration asks for, group by group. `KIND_GPU` counts for each listed GPU, and the
 * instances of one number on several GPUs have one name, as in Triton.
 */
export function planInstances(config: Pick<ModelConfig, "instanceGroup">): PlannedInstance[] {
  const planned: PlannedInstance[] = [];
  for (const group of config.instanceGroup) {
    const kind = group.kind === "KIND_AUTO" ? "KIND_CPU" : group.kind;
    const devices = kind === "KIND_GPU" ? group.gpus : [0];
    for (let number = 0; number < group.count; number++) {
      const name = `${group.name}_${number}`;
      for (const deviceId of devices) {
        planned.push({ name, index: planned.length, kind, deviceId, group });
      }
    }
  }
  return planned;
}

/** Tells whether an instance can serve as another: all that its group says of it, but for its name and number. */
export function instanceSignature({ kind, deviceId, group }: PlannedInstance): string {
  const { rateLimiter, secondaryDevices, profile, passive, hostPolicy, hosting } = group;
  return JSON.stringify([
    kind,
    deviceId,
    rateLimiter,
    secondaryDevices,
    profile,
    passive,
    hostPolicy,
    hosting,
  ]);
}
