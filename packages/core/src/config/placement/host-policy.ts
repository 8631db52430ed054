import type { PlannedInstance } from "./instances.js";

/** Settings of Triton's `--host-policy` for the instances that name it, as far as Node can apply them. */
export interface HostPolicy {
  /** Priority of the instance's process: 1 to 19 for less than others. For isolation `process` only. @default 0 */
  readonly nice?: number;
  /** Triton's `numa-node`. Accepted but not applied, because Node cannot bind memory. */
  readonly numaNode?: number;
  /** Triton's `cpu-cores`, `a-b`. Accepted but not applied, because Node cannot bind threads to cores. */
  readonly cpuCores?: string;
}

/** Host policies by name. */
export type HostPolicies = Readonly<Record<string, HostPolicy>>;

/** The policy of an instance: the one that its group names, or the one of its device. */
export function hostPolicyOf(
  { kind, deviceId, group }: PlannedInstance,
  policies: HostPolicies,
): HostPolicy | undefined {
  const ofDevice = kind === "KIND_GPU" ? `gpu_${deviceId}` : kind === "KIND_MODEL" ? "model" : "cpu";
  return policies[group.hostPolicy === "" ? ofDevice : group.hostPolicy];
}

/** Lists settings of the policies that cannot be applied, one per line, each with an alternative. */
export function hostPolicyWarnings(policies: HostPolicies): string[] {
  return Object.entries(policies).flatMap(([name, { numaNode, cpuCores }]) => [
    ...(numaNode === undefined
      ? []
      : [`host policy '${name}': numa-node is not applied; start the program under 'numactl --cpunodebind'`]),
    ...(cpuCores === undefined
      ? []
      : [`host policy '${name}': cpu-cores is not applied; start the program under 'taskset --cpu-list'`]),
  ]);
}
