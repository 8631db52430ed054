import { afterEach, expect, it, vi } from "vitest";
import type { MeasureClock } from "../../../src/measure/measure-level.js";
import { runPerf } from "../support/perf-command.js";
import { VirtualTime } from "../support/virtual-time.js";

afterEach(() => {
  vi.useRealTimers();
});

/** A clock that runs the timers of the process while it sleeps. */
class TimerTime extends VirtualTime implements MeasureClock {
  override async sleep(ms: number, signal: AbortSignal): Promise<void> {
    await vi.advanceTimersByTimeAsync(ms);
    await super.sleep(ms, signal);
  }
}

/** Number of reads of the metrics page during 3 windows of 2 seconds. */
async function readsOf(...options: string[]): Promise<number> {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  let reads = 0;
  const clock = new TimerTime();
  const { code } = await runPerf(
    ["-m", "m", "-p", "2000", "--collect-metrics", ...options],
    { serviceMs: () => 10 },
    {
      clock,
      target: {
        metricsPage: async () => {
          reads++;
          return "nv_cpu_utilization 0.5\n";
        },
      },
    },
  );
  expect(code).toBe(0);
  expect(vi.getTimerCount()).toBe(0);
  return reads;
}

it.each([
  ["each second by default", [], 6],
  ["at --metrics-interval", ["--metrics-interval", "250"], 24],
])("reads the metrics page %s, and at both ends of a level", async (_, options, inBetween) => {
  expect(await readsOf(...options)).toBe(inBetween + 2);
});
