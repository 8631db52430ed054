import type { PlannedInstance } from "./instances.js";

/** What Triton's `--host-policy` sets for the instances that name it, as far as Node can. */
export interface HostPolicy {
  /** Priority of the instance's process: 1 to 19 for less than others. For isolation `process`. @default 0 */
  readonly nice?: number;
  /** Triton's `numa-node`: accepted and not applied, because Node cannot bind memory. */
  readonly numaNode?: number;
  /** Triton's `cpu-cores`, `a-b`: accepted and not applied, because Node cannot bind threads to cores. */
  readonly cpuCores?: string;
}

/** Host policies by name. */
export type HostPolicies = Readonly<Record<string, HostPolicy>>;

/** The policy of an instance: the one that its group names, or that of its device. */
export function hostPolicyOf(
  { kind, deviceId, group }: PlannedInstance,
  policies: HostPolicies,
): HostPolicy | undefined {
  const ofDevice = kind === "KIND_GPU" ? `gpu_${deviceId}` : kind === "KIND_MODEL" ? "model" : "cpu";
  return policies[group.hostPolicy === "" ? ofDevice : group.hostPolicy];
}

/** What of the policies cannot be applied, a line each, and how it can be had all the same. */
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
