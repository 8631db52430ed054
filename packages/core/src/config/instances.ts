import type { InstanceKind, ModelConfig } from "./model-config.js";

/** One instance that a configuration asks for. */
export interface InstancePlacement {
  /** Triton's instance name: `m_0`, or `m_0_1` in a group of several. */
  readonly name: string;
  /** Position among all instances of the model. */
  readonly index: number;
  readonly kind: Exclude<InstanceKind, "KIND_AUTO">;
  /** Number of the GPU; 0 for other kinds. */
  readonly deviceId: number;
}

/** All instances that a configuration asks for, group by group; `KIND_GPU` counts for each listed GPU. */
export function planInstances(config: ModelConfig): InstancePlacement[] {
  const placements: InstancePlacement[] = [];
  for (const group of config.instanceGroup) {
    const kind = group.kind === "KIND_AUTO" ? "KIND_CPU" : group.kind;
    const devices = kind === "KIND_GPU" ? (group.gpus.length > 0 ? group.gpus : [0]) : [0];
    const total = devices.length * group.count;
    let number = 0;
    for (const deviceId of devices) {
      for (let i = 0; i < group.count; i++, number++) {
        const name = total > 1 ? `${group.name}_${number}` : group.name;
        placements.push({ name, index: placements.length, kind, deviceId });
      }
    }
  }
  return placements;
}
