import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { VirtualClock } from "@tritonjs/testing";
import { describe, expect, it, test } from "vitest";
import { growByRoom, limitMalloc, ownProcess, trimWhenGrown } from "../../src/serve/process-memory.js";

const MIB = 2 ** 20;

const own = ownProcess();

const missing = own === undefined ? " (skipped: needs glibc and koffi)" : "";

describe("malloc trim", () => {
  it("returns free memory each time the resident memory has grown by 8 MiB", async () => {
    const clock = new VirtualClock();
    let resident = 100 * MIB;
    let trims = 0;
    const trim = async () => {
      trims++;
      resident -= 5 * MIB;
    };
    trimWhenGrown({ residentBytes: () => resident, trim }, clock);
    const trimsAt = async (bytes: number) => {
      resident = bytes;
      await clock.advance(30_000);
      return trims;
    };
    expect(await trimsAt(107 * MIB)).toBe(0);
    expect(await trimsAt(108 * MIB)).toBe(1);
    expect(await trimsAt(110 * MIB)).toBe(1);
    expect(await trimsAt(111 * MIB)).toBe(2);
    // Less memory is the new measure.
    expect(await trimsAt(60 * MIB)).toBe(2);
    expect(await trimsAt(68 * MIB)).toBe(3);
  });

  it.skipIf(own === undefined)(
    `returns the gaps between buffers in use to the system${missing}`,
    async () => {
      setFlagsFromString("--expose-gc");
      const collectGarbage = runInNewContext("gc") as () => void;
      // Buffers below the least size that malloc maps by itself.
      let all: Buffer[] = Array.from({ length: 2048 }, () => Buffer.allocUnsafeSlow(64 * 1024).fill(1));
      const kept = all.filter((_, i) => i % 16 === 0);
      all = [];
      collectGarbage();
      collectGarbage();
      const before = own!.residentBytes();
      await own!.trim();
      expect(before - own!.residentBytes()).toBeGreaterThan(64 * MIB);
      expect(kept.every((buffer) => buffer[0] === 1)).toBe(true);
    },
  );
});

describe("malloc limits", () => {
  test.each([
    ["all limits of malloc in the environment", { MALLOC_TRIM_THRESHOLD_: "131072", MALLOC_ARENA_MAX: "2" }],
    ["tunables of malloc in the environment", { GLIBC_TUNABLES: "glibc.malloc.mmap_threshold=131072" }],
  ])("leaves %s as it is", (_, environment) => {
    expect(limitMalloc(environment)).toBe(false);
  });
});

describe("heap room", () => {
  const MIB = 1024 * 1024;

  it("lets a heap grow by 64 MiB, and leaves a large heap to V8", async () => {
    const clock = new VirtualClock();
    let used = 16 * MIB;
    const set: number[] = [];
    growByRoom({ usedBytes: () => used, grow: (percent) => void set.push(percent) }, clock);
    expect(set).toEqual([400]);
    for (const next of [17, 32, 33, 64, 200, 210, 20, 2]) {
      used = next * MIB;
      await clock.advance(10_000);
    }
    expect(set).toEqual([400, 200, 100, 0, 320]);
  });
});
