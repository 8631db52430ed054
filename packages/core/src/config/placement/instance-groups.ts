import type { InstanceHosting, ModelConfig, ModelInstanceGroup } from "@tritonjs/protocol";
import { HOSTING_OPTION_KEYS } from "../options/instance-hosting.js";
import type { InstanceGroupOptions, ModelOptions } from "../options/model-options.js";
import { defaultInstanceGroup } from "../schema/defaults.js";
import type { Gpus } from "./gpus.js";

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

/** One group or several, as a list. */
export function groupList(
  groups: NonNullable<ModelOptions["instanceGroup"]>,
): readonly InstanceGroupOptions[] {
  return Array.isArray(groups)
    ? (groups as readonly InstanceGroupOptions[])
    : [groups as InstanceGroupOptions];
}

function hostingOf(group: InstanceGroupOptions): InstanceHosting | undefined {
  const given = HOSTING_OPTION_KEYS.filter((key) => group[key] !== undefined);
  return given.length === 0 ? undefined : Object.fromEntries(given.map((key) => [key, group[key]]));
}

/**
 * Fills the fields that a group leaves to Triton: its name, count and GPUs. `KIND_AUTO` becomes `KIND_GPU` if all listed
 * GPUs exist, else `KIND_CPU`. `KIND_CPU` with a list of GPUs is refused. Nothing moves to a GPU that was not named.
 */
export function normalizeInstanceGroups(
  { name, instanceGroup }: Pick<ModelConfig, "name" | "instanceGroup">,
  gpus: Gpus,
): ModelInstanceGroup[] {
  return instanceGroup.map((given, index) => {
    const group = { ...defaultInstanceGroup(""), ...given };
    const listed = group.gpus.length > 0 && group.gpus.every((gpu) => gpus.numbers?.includes(gpu));
    const kind = group.kind === "KIND_AUTO" ? (listed ? "KIND_GPU" : "KIND_CPU") : group.kind;
    return {
      ...group,
      name: group.name === "" ? `${name}_${index}` : group.name,
      kind,
      count: group.count === 0 ? 1 : group.count,
      gpus: kind === "KIND_GPU" && group.gpus.length === 0 ? [...(gpus.numbers ?? [])] : group.gpus,
    };
  });
}

/** Most instances of a group, far above the processors and GPUs of a machine: each takes memory and time to make. */
const MAX_COUNT = 16_384;

/** Lists problems with instance groups, in Triton's words where it has some. */
export function instanceGroupProblems(
  { name: model, platform, instanceGroup }: Pick<ModelConfig, "name" | "platform" | "instanceGroup">,
  gpus: Gpus,
): string[] {
  const problems: string[] = [];
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
