import { VirtualClock } from "@tritonjs/core/testing";
import { expect, it } from "vitest";
import { growByRoom } from "../../src/serve/process-memory.js";

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
