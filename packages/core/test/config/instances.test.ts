import { describe, expect, it } from "vitest";
import { planInstances } from "../../src/config/instances.js";
import type { InstanceGroupOptions } from "../../src/config/model-options.js";
import { modelConfig } from "../support/model-config.js";

const plan = (...instanceGroup: readonly InstanceGroupOptions[]) =>
  planInstances(modelConfig({ options: { instanceGroup } }));
const names = (...groups: readonly InstanceGroupOptions[]) => plan(...groups).map(({ name }) => name);

describe("instances", () => {
  it("are one on the CPU when nobody said more", () => {
    expect(planInstances(modelConfig())).toEqual([{ name: "m", index: 0, kind: "KIND_CPU", deviceId: 0 }]);
  });

  it("are as many as there are functions in a list", () => {
    expect(planInstances(modelConfig({ instances: 3 })).map(({ name, index }) => [name, index])).toEqual([
      ["m_0", 0],
      ["m_1", 1],
      ["m_2", 2],
    ]);
  });

  it("have Triton's names: that of the group, with a number in a group of several", () => {
    expect(names({ count: 1 })).toEqual(["m_0"]);
    expect(names({ count: 2 }, { count: 1 })).toEqual(["m_0_0", "m_0_1", "m_1"]);
  });

  it("are counted for each GPU of a group", () => {
    expect(
      plan({ count: 2, gpus: [1, 3] }).map(({ name, kind, deviceId }) => [name, kind, deviceId]),
    ).toEqual([
      ["m_0_0", "KIND_GPU", 1],
      ["m_0_1", "KIND_GPU", 1],
      ["m_0_2", "KIND_GPU", 3],
      ["m_0_3", "KIND_GPU", 3],
    ]);
  });

  it("are numbered over all groups", () => {
    expect(plan({ count: 2 }, { count: 2 }).map(({ index }) => index)).toEqual([0, 1, 2, 3]);
  });

  it("use the first GPU when a GPU group names none", () => {
    expect(plan({ kind: "KIND_GPU" })).toMatchObject([{ kind: "KIND_GPU", deviceId: 0 }]);
  });
});
