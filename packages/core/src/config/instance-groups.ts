import type { InstanceHosting, InstanceKind, ModelConfig, ModelInstanceGroup } from "@tritonjs/protocol";
import { defaultInstanceGroup } from "@tritonjs/protocol/config";
import type { HostPolicies, HostPolicy } from "../system/host-policy.js";
import type { Gpus } from "./gpus.js";
import { HOSTING_OPTION_TYPES, type InstanceGroupOptions, type ModelOptions } from "./model-options.js";

/** The groups that options ask for. Without any, one group of `defaultCount` instances on the CPU. */
export function instanceGroups(
  modelName: string,
  groups: ModelOptions["instanceGroup"],
  defaultCount: number,
): ModelInstanceGroup[] {
  if (groups === undefined) return [{ ...defaultInstanceGroup(modelName), count: defaultCount }];
  return groupList(groups).map((group, index) => {
    const { rateLimiter } = group;
    const hosting = hostingOf(group);
    return {
      ...defaultInstanceGroup(group.name ?? `${modelName}_${index}`),
      kind: group.kind ?? "KIND_AUTO",
      count: group.count ?? defaultCount,
      gpus: [...(group.gpus ?? [])],
      passive: group.passive ?? false,
      hostPolicy: group.hostPolicy ?? "",
      ...(rateLimiter === undefined
        ? {}
        : {
            rateLimiter: {
              resources: (rateLimiter.resources ?? []).map((one) => ({ global: false, ...one })),
              priority: rateLimiter.priority ?? 0,
            },
          }),
      ...(hosting === undefined ? {} : { hosting }),
    };
  });
}

export function groupList(
  groups: NonNullable<ModelOptions["instanceGroup"]>,
): readonly InstanceGroupOptions[] {
  return Array.isArray(groups)
    ? (groups as readonly InstanceGroupOptions[])
    : [groups as InstanceGroupOptions];
}

function hostingOf(group: InstanceGroupOptions): InstanceHosting | undefined {
  const given = (Object.keys(HOSTING_OPTION_TYPES) as (keyof InstanceHosting)[]).filter(
    (key) => group[key] !== undefined,
  );
  return given.length === 0 ? undefined : Object.fromEntries(given.map((key) => [key, group[key]]));
}

/**
 * Fills the fields that a group leaves to Triton: its name, count and GPUs. `KIND_AUTO` becomes `KIND_GPU` if all listed
 * GPUs exist, else `KIND_CPU`. `KIND_CPU` with a list of GPUs is refused. Nothing moves to a GPU that was not named. A group of `KIND_GPU` that falls
 * back to the CPU has as many instances as on one GPU.
 */
export function normalizeInstanceGroups(
  { name, instanceGroup }: Pick<ModelConfig, "name" | "instanceGroup">,
  gpus: Gpus,
): ModelInstanceGroup[] {
  return instanceGroup.map((given, index) => {
    const group = { ...defaultInstanceGroup(""), ...given };
    const listed = group.gpus.length > 0 && group.gpus.every((gpu) => gpus.numbers?.includes(gpu));
    const fallsBack = group.kind === "KIND_GPU" && gpus.runsOnCpu?.(name) === true;
    const wanted = fallsBack ? "KIND_CPU" : group.kind;
    const kind = wanted === "KIND_AUTO" ? (listed ? "KIND_GPU" : "KIND_CPU") : wanted;
    return {
      ...group,
      name: group.name === "" ? `${name}_${index}` : group.name,
      kind,
      count: group.count === 0 ? 1 : group.count,
      gpus: fallsBack
        ? []
        : kind === "KIND_GPU" && group.gpus.length === 0
          ? [...(gpus.numbers ?? [])]
          : group.gpus,
    };
  });
}

/** Most instances of a model, far above the processors and GPUs of a machine: each takes memory and time to make. */
const MAX_COUNT = 16_384;

export function instanceGroupProblems(
  { name: model, platform, instanceGroup }: Pick<ModelConfig, "name" | "platform" | "instanceGroup">,
  gpus: Gpus,
): string[] {
  const problems: string[] = [];
  const all = instanceGroup.reduce((sum, { count, gpus }) => sum + count * Math.max(1, gpus.length), 0);
  if (instanceGroup.length > 1 && all > MAX_COUNT)
    return [`instance groups of model ${model}: expected at most ${MAX_COUNT} instances, got ${all}`];
  for (const { name, kind, count, gpus: wanted, profile, rateLimiter } of instanceGroup) {
    const group = `instance group ${name} of model ${model}`;
    if (!Number.isInteger(count) || count < 1) {
      problems.push(`${group}: expected a count of at least 1, got ${count}`);
    } else if (count > MAX_COUNT) {
      problems.push(`${group}: expected a count of at most ${MAX_COUNT}, got ${count}`);
    }
    if (kind === "KIND_GPU") problems.push(...gpuProblems(group, wanted, gpus.numbers));
    else if (wanted.length > 0) problems.push(`${group} has kind ${kind} but specifies one or more GPUs`);
    if (profile.length > 0) {
      problems.push(
        `${group} and platform ${platform}specifies profile field which is only supported for TensorRT models`,
      );
    }
    problems.push(...rateLimiterProblems(group, rateLimiter));
  }
  return problems;
}

function gpuProblems(
  group: string,
  wanted: readonly number[],
  gpus: readonly number[] | undefined,
): string[] {
  if (gpus === undefined) return [`${group} has kind KIND_GPU but server does not support GPUs`];
  if (gpus.length === 0) return [`${group} has kind KIND_GPU but no GPUs are available`];
  const unknown = wanted.find((gpu) => !gpus.includes(gpu));
  if (unknown === undefined) return [];
  return [`${group} specifies invalid or unsupported gpu id ${unknown}. The GPUs are: ${gpus.join(", ")}`];
}

function rateLimiterProblems(group: string, limiter: ModelInstanceGroup["rateLimiter"]): string[] {
  if (limiter === undefined) return [];
  const problems = limiter.resources
    .filter(({ count }) => !Number.isSafeInteger(count) || count < 0)
    .map(
      ({ name, count }) =>
        `${group}: expected a non-negative integer as the count of resource "${name}", got ${count}`,
    );
  if (!Number.isSafeInteger(limiter.priority) || limiter.priority < 0) {
    problems.push(`${group}: expected a rate limiter priority of 0 or more, got ${limiter.priority}`);
  }
  return problems;
}

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
    const { count, kind } = counted[index]!;
    if (count === 0 && kind !== "KIND_GPU" && group.kind === "KIND_CPU" && TWO_INSTANCES.has(config.backend))
      group.count = 2;
  }
  return { ...config, instanceGroup };
}

/** One instance that a configuration asks for. */
export interface InstancePlacement {
  /** Triton's instance name: the group's with a number, such as `m_0`, or `m_0_0` for a listed group. */
  readonly name: string;
  /** Index among all instances of the model. */
  readonly index: number;
  readonly kind: Exclude<InstanceKind, "KIND_AUTO">;
  /** Number of the GPU; 0 for other kinds. */
  readonly deviceId: number;
}

export interface PlannedInstance extends InstancePlacement {
  readonly group: ModelInstanceGroup;
}

/** Lists the instances of a configuration. As in Triton, instances of one number on several GPUs share one name. */
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

export function hostPolicyOf(
  { kind, deviceId, group }: PlannedInstance,
  policies: HostPolicies,
): HostPolicy | undefined {
  const ofDevice = kind === "KIND_GPU" ? `gpu_${deviceId}` : kind === "KIND_MODEL" ? "model" : "cpu";
  return policies[group.hostPolicy === "" ? ofDevice : group.hostPolicy];
}
