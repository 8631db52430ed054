import type { InstanceKind, ModelConfig, ModelInstanceGroup } from "@tritonjs/protocol";

/** One instance that a configuration asks for. */
export interface InstancePlacement {
  /**
   * Triton's instance name: the name of the group with a number, such as `m_0`, or `m_0_0` for a group that the
   * configuration lists.
   */
  readonly name: string;
  /** Index among all instances of the model. */
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
 * Lists all instances that a configuration asks for, group by group. The count of `KIND_GPU` applies to each listed
 * GPU. As in Triton, instances of one number on several GPUs share one name.
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

/** Number of all instances that a configuration asks for, however large. */
export function countInstances({ instanceGroup }: Pick<ModelConfig, "instanceGroup">): number {
  return instanceGroup.reduce(
    (sum, { kind, count, gpus }) => sum + count * (kind === "KIND_GPU" ? gpus.length : 1),
    0,
  );
}

/** Key of the instances that can replace each other: all properties of the group except its name and count. */
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
