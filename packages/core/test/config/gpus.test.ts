import { readdirSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fakeNvidiaSmi, gpuList } from "../../../../test/support/fake-nvidia-smi.js";
import { findGpus } from "../../src/config/find-gpus.js";
import { listedGpus, MachineGpus } from "../../src/config/gpus.js";
import { visibleGpus } from "../../src/config/visible-gpus.js";

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
    expect(findGpus()).toEqual({ numbers: [0, 1, 2] });
  });

  it("are counted anew when CUDA_VISIBLE_DEVICES chooses some", async () => {
    await using _ = await fakeNvidiaSmi(gpuList(3));
    process.env.CUDA_VISIBLE_DEVICES = "2,GPU-00000000";
    expect(findGpus()).toEqual({ numbers: [0, 1] });
    process.env.CUDA_VISIBLE_DEVICES = "-1";
    expect(findGpus()).toEqual({
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
    ["it says something else", "echo surprise", undefined, "nvidia-smi exited with 0: surprise"],
    ["it says nothing at all", "exit 3", undefined, "nvidia-smi exited with 3: no output"],
    ["it lists none", "exit 0", [], "nvidia-smi lists no GPUs"],
  ])("are none, for a reason, when %s", async (_name, script, numbers, reason) => {
    await using _ = await fakeNvidiaSmi(script);
    expect(findGpus()).toEqual({ numbers, reason });
  });

  it.skipIf(hasDeviceFiles)("are none where there is no nvidia-smi", async () => {
    await using _ = await fakeNvidiaSmi(undefined);
    expect(findGpus()).toEqual({ numbers: undefined, reason: "nvidia-smi was not found" });
  });

  it("are looked for once, when they are first asked for, and told of", async () => {
    const lines: string[] = [];
    const log = { info: (line: string) => lines.push(line), warning: (line: string) => lines.push(line) };
    const gpus = new MachineGpus(log);
    {
      await using _ = await fakeNvidiaSmi(gpuList(2));
      expect(lines).toEqual([]);
      expect(gpus.numbers).toEqual([0, 1]);
    }
    expect(gpus.numbers).toEqual([0, 1]);
    expect(lines).toEqual(["GPUs for instances: 0, 1"]);
    await using _ = await fakeNvidiaSmi("exit 3");
    expect(new MachineGpus(log).numbers).toBeUndefined();
    expect(lines[1]).toBe("no GPU can be used for instances: nvidia-smi exited with 3: no output");
  });
});

describe("the GPUs that a program lists", () => {
  it("are taken as they are, and an empty list means none at all", () => {
    expect(listedGpus([0, 2]).numbers).toEqual([0, 2]);
    expect(listedGpus([]).numbers).toBeUndefined();
  });
});

describe("CUDA_VISIBLE_DEVICES", () => {
  const all = [0, 1, 2].map((number) => ({ number, uuid: `GPU-${number}a` }));

  it("counts up to the first entry that is no GPU", () => {
    expect(visibleGpus(all, undefined)).toEqual([0, 1, 2]);
    expect(visibleGpus(all, "2,0")).toEqual([0, 1]);
    expect(visibleGpus(all, "1,-1,0")).toEqual([0]);
    expect(visibleGpus(all, " 1 , 7, 0")).toEqual([0]);
    expect(visibleGpus(all, "GPU-2,GPU-1a")).toEqual([0, 1]);
    expect(visibleGpus(all, "GPU-9")).toEqual([]);
    expect(visibleGpus(all, "")).toEqual([]);
  });

  it("is believed about UUIDs that are not known", () => {
    expect(visibleGpus([{ number: 0, uuid: "" }], "GPU-1234")).toEqual([0]);
  });
});
