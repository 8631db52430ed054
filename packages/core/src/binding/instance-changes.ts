import { type ModelConfig, type ModelInstanceGroup, TritonError } from "@tritonjs/protocol";
import { hostingProblems } from "../config/options/instance-hosting.js";
import type { InstanceGroupOptions } from "../config/options/model-options.js";
import type { Gpus } from "../config/placement/gpus.js";
import {
  groupList,
  instanceGroupProblems,
  instanceGroups,
  normalizeInstanceGroups,
} from "../config/placement/instance-groups.js";
import { countInstances } from "../config/placement/instances.js";

import type { ExecutorPlan } from "./plan-executors.js";

/** Lists problems with the instance groups of a model whose executors are made by this plan. */
export function instanceProblems(
  config: Pick<ModelConfig, "name" | "instanceGroup">,
  plan: Pick<ExecutorPlan, "isolations" | "isNative" | "exactInstanceCount">,
): string[] {
  const { isolations, isNative, exactInstanceCount } = plan;
  const problems = config.instanceGroup.flatMap(({ hosting }) =>
    hosting === undefined || isolations === undefined
      ? []
      : hostingProblems("config.instanceGroup", hosting, isolations, isNative),
  );
  const instances = countInstances(config);
  if (exactInstanceCount !== undefined && exactInstanceCount !== instances) {
    problems.push(
      `inferFunc has ${exactInstanceCount} functions, one for each instance, but config.instanceGroup ` +
        `asks for ${instances} instances`,
    );
  }
  return problems;
}

/** Argument of `updateInstances`: the new groups, or a number, which becomes the count of the first present group. */
export type InstanceChange = number | InstanceGroupOptions | readonly InstanceGroupOptions[];

/**
 * Turns the argument of `updateInstances` into instance groups.
 *
 * @throws TritonError INVALID_ARG that lists every problem.
 */
export function changedGroups(
  change: InstanceChange,
  config: ModelConfig,
  gpus: Gpus,
  check: (config: ModelConfig) => readonly string[],
): ModelInstanceGroup[] {
  const named = { name: config.name, platform: config.platform };
  const given =
    typeof change === "number"
      ? config.instanceGroup.map((group, i) => (i === 0 ? { ...group, count: change } : group))
      : instanceGroups(config.name, groupList(change), 1);
  const instanceGroup =
    typeof change === "number" ? given : normalizeInstanceGroups({ ...named, instanceGroup: given }, gpus);
  const changed = { ...config, instanceGroup };
  const problems = [...instanceGroupProblems(changed, gpus), ...check(changed)];
  if (problems.length > 0) {
    throw new TritonError(
      "INVALID_ARG",
      `cannot change the instances of model '${config.name}':\n${problems.map((one) => `- ${one}`).join("\n")}`,
      { reason: "INVALID_CONFIG" },
    );
  }
  return instanceGroup;
}
