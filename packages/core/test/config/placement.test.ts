import { describe, expect, it } from "vitest";
import { instanceSignature, planInstances } from "../../src/config/instance-groups.js";
import type { InstanceGroupOptions } from "../../src/config/model-options.js";
import { validateConfig, validateOptions } from "../../src/config/resolve-config.js";
import { modelConfig } from "../support/model-config.js";

const plan = (...instanceGroup: readonly InstanceGroupOptions[]) =>
  planInstances(modelConfig({ options: { instanceGroup }, gpus: [0, 1, 3] }));

const names = (...groups: readonly InstanceGroupOptions[]) => plan(...groups).map(({ name }) => name);

/** Problems of a group on a machine with these GPUs. */
const problems = (instanceGroup: InstanceGroupOptions, gpus?: readonly number[]) =>
  validateConfig(modelConfig({ options: { instanceGroup }, gpus }), { numbers: gpus });

describe("planned instances", () => {
  it("are one on the CPU by default", () => {
    expect(planInstances(modelConfig())).toMatchObject([
      { name: "m_0", index: 0, kind: "KIND_CPU", deviceId: 0, group: { name: "m", passive: false } },
    ]);
  });

  it("are as many as a list of functions has", () => {
    expect(planInstances(modelConfig({ instances: 3 })).map(({ name, index }) => [name, index])).toEqual([
      ["m_0", 0],
      ["m_1", 1],
      ["m_2", 2],
    ]);
  });

  it("have Triton's names: the group name and a number", () => {
    expect(names({ count: 1 })).toEqual(["m_0_0"]);
    expect(names({ count: 2 }, { count: 1 })).toEqual(["m_0_0", "m_0_1", "m_1_0"]);
    expect(names({ name: "big", count: 2 }, {})).toEqual(["big_0", "big_1", "m_1_0"]);
  });

  it("are created on each GPU of a group, under one name for each number", () => {
    const placed = plan({ count: 2, gpus: [1, 3] });
    expect(placed.map(({ name, kind, deviceId }) => [name, kind, deviceId])).toEqual([
      ["m_0_0", "KIND_GPU", 1],
      ["m_0_0", "KIND_GPU", 3],
      ["m_0_1", "KIND_GPU", 1],
      ["m_0_1", "KIND_GPU", 3],
    ]);
  });

  it("are numbered across all groups", () => {
    expect(plan({ count: 2 }, { count: 2 }).map(({ index }) => index)).toEqual([0, 1, 2, 3]);
  });

  it("use all GPUs when a GPU group names none", () => {
    expect(plan({ kind: "KIND_GPU" }).map(({ deviceId }) => deviceId)).toEqual([0, 1, 3]);
  });

  it("use listed GPUs that exist for KIND_AUTO, else the CPU", () => {
    expect(plan({ gpus: [1] })).toMatchObject([{ kind: "KIND_GPU", deviceId: 1 }]);
    expect(plan({})).toMatchObject([{ kind: "KIND_CPU" }]);
    expect(plan({ gpus: [7] })).toMatchObject([{ kind: "KIND_CPU" }]);
  });

  it("have equal signatures when their groups differ only in name and number", () => {
    const [first, second] = plan({ count: 1 }, { count: 3, name: "other" });
    const [passive] = plan({ passive: true });
    expect(instanceSignature(first!)).toBe(instanceSignature(second!));
    expect(instanceSignature(first!)).not.toBe(instanceSignature(passive!));
  });
});

describe("invalid instance groups", () => {
  it("are those that ask for GPUs the server does not have", () => {
    const group = "instance group m_0 of model m";
    expect(problems({ kind: "KIND_GPU" })).toEqual([
      `${group} has kind KIND_GPU but server does not support GPUs`,
    ]);
    expect(problems({ kind: "KIND_GPU" }, [])).toEqual([
      `${group} has kind KIND_GPU but no GPUs are available`,
    ]);
    expect(problems({ kind: "KIND_GPU", gpus: [0, 2] }, [0, 1])).toEqual([
      `${group} specifies invalid or unsupported gpu id 2. The GPUs are: 0, 1`,
    ]);
    expect(problems({ gpus: [2] }, [0, 1])).toEqual([
      `${group} has kind KIND_CPU but specifies one or more GPUs`,
    ]);
    expect(problems({ kind: "KIND_MODEL", gpus: [0] }, [0])).toEqual([
      `${group} has kind KIND_MODEL but specifies one or more GPUs`,
    ]);
  });

  it("are those with a count below 1, invalid resource counts, or unknown options", () => {
    expect(problems({ count: -1 })).toEqual([
      "instance group m_0 of model m: expected a count of at least 1, got -1",
    ]);
    expect(problems({ rateLimiter: { resources: [{ name: "R", count: 0.5 }], priority: -1 } })).toEqual([
      'instance group m_0 of model m: expected a non-negative integer as the count of resource "R", got 0.5',
      "instance group m_0 of model m: expected a rate limiter priority of 0 or more, got -1",
    ]);
    const misspelt = { count: 0, recycle: { afterReqests: 1 } } as InstanceGroupOptions;
    expect(validateOptions({ instanceGroup: misspelt })).toEqual([
      "config.instanceGroup.recycle has an unknown option 'afterReqests': did you mean 'afterRequests'?",
      "config.instanceGroup.count: expected at least 1, got 0",
    ]);
  });
});
