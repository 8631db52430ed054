import { availableParallelism } from "node:os";
import { describe, expect, it } from "vitest";
import { availableCores } from "../../src/frontend-threads/place-frontends.js";

const FILES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "no control groups": {},
  "a container without a quota": { "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "max 100000\n" },
  "a container of two cores and a half": {
    "/proc/self/cgroup": "0::/\n",
    "/sys/fs/cgroup/cpu.max": "250000 100000\n",
  },
  "a container of half a core": { "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "50000 100000\n" },
  "a service in a slice of four cores": {
    "/proc/self/cgroup": "0::/system.slice/model.service\n",
    "/sys/fs/cgroup/system.slice/cpu.max": "400000 100000\n",
    "/sys/fs/cgroup/system.slice/model.service/cpu.max": "max 100000\n",
  },
  "a container of three cores in the first version": {
    "/proc/self/cgroup": "5:memory:/docker/a\n4:cpu,cpuacct:/docker/a\n",
    "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "300000\n",
    "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
  },
  "no quota in the first version": {
    "/proc/self/cgroup": "4:cpu,cpuacct:/\n",
    "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
    "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
  },
};

describe("available cores", () => {
  it.each([
    ["no control groups", 64],
    ["a container without a quota", 64],
    ["a container of two cores and a half", 2],
    ["a container of half a core", 1],
    ["a service in a slice of four cores", 4],
    ["a container of three cores in the first version", 3],
    ["no quota in the first version", 64],
  ])("of 64 cores, %s may use %i", (where, cores) => {
    expect(availableCores((path) => FILES[where]![path], 64)).toBe(cores);
  });

  it("is at most the number of cores of this machine", () => {
    expect(availableCores()).toBeGreaterThanOrEqual(1);
    expect(availableCores()).toBeLessThanOrEqual(availableParallelism());
  });
});
