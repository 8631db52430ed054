import type { ModelConfig } from "@tritonjs/protocol";
import type { Gpus } from "../placement/gpus.js";
import { normalizeInstanceGroups } from "../placement/instance-groups.js";
import { defaultInstanceGroup } from "../schema/defaults.js";

/** Backends of which Triton runs two instances on the CPU by default. */
const TWO_INSTANCES: ReadonlySet<string> = new Set(["onnxruntime", "tensorflow"]);

/** Gives each instance group its name, kind and count. Makes one group if there is none. */
export function completeInstanceGroups(config: ModelConfig, gpus: Gpus): ModelConfig {
  if (config.ensembleScheduling !== undefined) return config;
  const written =
    config.instanceGroup.length > 0
      ? config.instanceGroup
      : [{ ...defaultInstanceGroup(config.name), kind: "KIND_AUTO" as const, count: 0 }];
  const counted = written.map((group) => ({ ...group, count: Math.max(0, group.count) }));
  const instanceGroup = normalizeInstanceGroups({ name: config.name, instanceGroup: counted }, gpus);
  for (const [index, group] of instanceGroup.entries()) {
    const isOpen = counted[index]!.count === 0;
    if (isOpen && group.kind === "KIND_CPU" && TWO_INSTANCES.has(config.backend)) group.count = 2;
  }
  return { ...config, instanceGroup };
}
