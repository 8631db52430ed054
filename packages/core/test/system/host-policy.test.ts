import { describe, expect, it } from "vitest";
import { coresOf, hostPolicyWarnings } from "../../src/system/host-policy.js";

describe("the cores of a host policy", () => {
  it.each([
    ["0-3", [0, 1, 2, 3]],
    ["0-1,4-5", [0, 1, 4, 5]],
    ["2-2", [2]],
    ["3-1", []],
    [" 0-1x", [0, 1]],
    ["1022-9999", [1022, 1023]],
  ])("are the ranges of %s", (text, cores) => {
    expect(coresOf(text)).toEqual(cores);
  });

  it.each([
    ["3", "host policy setting 'cpu-cores' format is '<lower_cpu_core_id>-<upper_cpu_core_id>'. Got 3"],
    ["0-1,4", "host policy setting 'cpu-cores' format is '<lower_cpu_core_id>-<upper_cpu_core_id>'. Got 4"],
    ["", "host policy setting 'cpu-cores' format is '<lower_cpu_core_id>-<upper_cpu_core_id>'. Got "],
    ["a-1", "Parsing 'cpu-cores' value: Can't parse 'a' to integer"],
    ["0-", "Parsing 'cpu-cores' value: Can't parse '' to integer"],
    ["0-99999999999", "Parsing 'cpu-cores' value: Can't parse '99999999999' to integer"],
  ])("are refused in Triton's words: '%s'", (text, message) => {
    expect(() => coresOf(text)).toThrow(message);
  });
});

describe("a setting that cannot be applied", () => {
  const platform = Object.getOwnPropertyDescriptor(process, "platform")!;
  it.each(["darwin", "win32"])("is warned of by name on %s", (value) => {
    Object.defineProperty(process, "platform", { ...platform, value });
    try {
      expect(hostPolicyWarnings({ cpu: { cpuCores: "0-1", numaNode: 0 }, low: { nice: 3 } })).toEqual([
        `host policy 'cpu': numa-node is not applied: expected Linux, got ${value}; remove the setting`,
        `host policy 'cpu': cpu-cores is not applied: expected Linux, got ${value}; remove the setting`,
      ]);
    } finally {
      Object.defineProperty(process, "platform", platform);
    }
  });
});
