import { expect, it } from "vitest";
import { threadCpuMs } from "../../../src/load/load-loop.js";

it("the CPU time of a thread rises while it works, and is not more than that of its process", () => {
  const before = threadCpuMs();
  const processBefore = process.cpuUsage();
  // Some systems count in steps.
  while (threadCpuMs() < before + 20) JSON.stringify({ before });
  const used = threadCpuMs() - before;
  const { user, system } = process.cpuUsage(processBefore);
  expect(used).toBeGreaterThanOrEqual(20);
  // Elsewhere it is the time for which the event loop was busy.
  const isKnown = process.platform === "linux" || "threadCpuUsage" in process;
  // Steps of the two clocks differ.
  if (isKnown) expect(used).toBeLessThan((user + system) / 1000 + 20);
});
