import { readdirSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fakeNvidiaSmi, gpuList } from "../../../../test/support/fake-nvidia-smi.js";
import { findGpus, visibleGpus } from "../../src/gpu/driver-gpus.js";
import { listedGpus, MachineGpus } from "../../src/gpu/server-gpus.js";

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
