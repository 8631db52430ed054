import { readdirSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fakeNvidiaSmi, gpuList } from "../../../../test/support/fake-nvidia-smi.js";
import { findGpus, listedGpus, MachineGpus, visibleGpus } from "../../src/config/gpus.js";
import { instanceSignature, planInstances } from "../../src/config/instance-groups.js";
import type { InstanceGroupOptions } from "../../src/config/model-options.js";
import { validateConfig, validateOptions } from "../../src/config/resolve-config.js";
import { modelConfig } from "../support/model-config.js";

/** The tests of NVML have it. */
const withoutNvml = () => undefined;

const hasDeviceFiles =
  process.platform === "linux" && readdirSync("/dev").some((name) => /^nvidia\d+$/.test(name));

const visible = process.env.CUDA_VISIBLE_DEVICES;
beforeEach(() => void delete process.env.CUDA_VISIBLE_DEVICES);

afterEach(() => {
  if (visible === undefined) delete process.env.CUDA_VISIBLE_DEVICES;
  else process.env.CUDA_VISIBLE_DEVICES = visible;
});

describe.skipIf(process.platform === "win32")("the GPUs of a machine", () => {
  it("are those that nvidia-smi lists", async () => {
    await using _ = await fakeNvidiaSmi(gpuList(3));
    expect(findGpus(withoutNvml)).toEqual({ numbers: [0, 1, 2] });
  });

  it("are renumbered when CUDA_VISIBLE_DEVICES selects some", async () => {
    await using _ = await fakeNvidiaSmi(gpuList(3));
    process.env.CUDA_VISIBLE_DEVICES = "2,GPU-00000000";
    expect(findGpus(withoutNvml)).toEqual({ numbers: [0, 1] });
    process.env.CUDA_VISIBLE_DEVICES = "-1";
    expect(findGpus(withoutNvml)).toEqual({
      numbers: [],
      reason: "CUDA_VISIBLE_DEVICES '-1' hides all 3 GPUs",
    });
  });

  it.each([
    [
      "No devices were found",
      'echo "No devices were found"; exit 6',
      [],
      "nvidia-smi reports: No devices were found",
    ],
    [
      "no driver answers",
      'echo "NVIDIA-SMI has failed because it couldn\'t communicate with the NVIDIA driver."; echo more; exit 9',
      undefined,
      "nvidia-smi exited with 9: NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
    ],
    ["nvidia-smi prints an unknown text", "echo surprise", undefined, "nvidia-smi exited with 0: surprise"],
    ["nvidia-smi fails silently", "exit 3", undefined, "nvidia-smi exited with 3: no output"],
    ["nvidia-smi lists no GPU", "exit 0", [], "nvidia-smi lists no GPUs"],
  ])("are empty, with a reason, when %s", async (_name, script, numbers, reason) => {
    await using _ = await fakeNvidiaSmi(script);
    expect(findGpus(withoutNvml)).toEqual({ numbers, reason });
  });

  it.skipIf(hasDeviceFiles)("are unknown without nvidia-smi", async () => {
    await using _ = await fakeNvidiaSmi(undefined);
    expect(findGpus(withoutNvml)).toEqual({ numbers: undefined, reason: "nvidia-smi was not found" });
  });

  it("are detected once, on first use, and logged", async () => {
    const lines: string[] = [];
    const log = { info: (line: string) => lines.push(line), warning: (line: string) => lines.push(line) };
    const gpus = new MachineGpus(log, withoutNvml);
    {
      await using _ = await fakeNvidiaSmi(gpuList(2));
      expect(lines).toEqual([]);
      expect(gpus.numbers).toEqual([0, 1]);
    }
    expect(gpus.numbers).toEqual([0, 1]);
    expect(lines).toEqual(["GPUs for instances: 0, 1"]);
    await using _ = await fakeNvidiaSmi("exit 3");
    expect(new MachineGpus(log, withoutNvml).numbers).toBeUndefined();
    expect(lines[1]).toBe("no GPU can be used for instances: nvidia-smi exited with 3: no output");
  });
});

describe("GPUs listed by a program", () => {
  it("are used as given; an empty list means no GPU", () => {
    expect(listedGpus([0, 2]).numbers).toEqual([0, 2]);
    expect(listedGpus([]).numbers).toBeUndefined();
  });
});

describe("CUDA_VISIBLE_DEVICES", () => {
  const all = [0, 1, 2].map((number) => ({ number, uuid: `GPU-${number}a` }));

  it("selects GPUs up to the first invalid entry", () => {
    expect(visibleGpus(all, undefined)).toEqual([0, 1, 2]);
    expect(visibleGpus(all, "2,0")).toEqual([0, 1]);
    expect(visibleGpus(all, "1,-1,0")).toEqual([0]);
    expect(visibleGpus(all, " 1 , 7, 0")).toEqual([0]);
    expect(visibleGpus(all, "GPU-2,GPU-1a")).toEqual([0, 1]);
    expect(visibleGpus(all, "GPU-9")).toEqual([]);
    expect(visibleGpus(all, "")).toEqual([]);
  });

  it("selects by UUIDs that nvidia-smi does not report", () => {
    expect(visibleGpus([{ number: 0, uuid: "" }], "GPU-1234")).toEqual([0]);
  });
});

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
