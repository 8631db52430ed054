import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LoopLoad, LoopTime } from "../support/loop-load.js";
import { runPerf } from "../support/perf-command.js";
import type { SimulatedServer } from "../support/simulated-load.js";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "perf-"));
});
afterAll(() => rm(folder, { recursive: true }));

/** Runs the command with the project's loop on a virtual clock. */
async function runOnLoop(line: string, server: SimulatedServer) {
  const clock = new LoopTime();
  let load: LoopLoad | undefined;
  const startGenerator = async (_target: unknown, _data: unknown, { seed }: { readonly seed?: number }) => {
    load = new LoopLoad(clock, server, seed);
    return load;
  };
  const end = await runPerf(["-m", "m", ...line.split(" ")], server, { testbed: { clock, startGenerator } });
  return { ...end, load: load! };
}

const quick = { serviceMs: () => 1 };

/** Number of sends in each second. */
function countsBySecond(sentAt: readonly number[]): number[] {
  const counts: number[] = [];
  for (const time of sentAt) {
    const second = Math.floor(time / 1000);
    counts[second] = (counts[second] ?? 0) + 1;
  }
  return counts;
}

describe("the load of perf", () => {
  it("sends at the gaps of --request-intervals, from the first again after the last", async () => {
    const gaps = join(folder, "gaps");
    await writeFile(gaps, "100000\n200000\n500000\n");
    const { code, load } = await runOnLoop(`--request-intervals ${gaps} --request-count 7`, quick);
    expect(code).toBe(0);
    expect(load.sentAt.map((time) => Math.round(time))).toEqual([100, 300, 800, 900, 1100, 1600, 1700]);
  });

  it.each([
    ["0:200:10s", (second: number) => 10 + 20 * second],
    ["200:100:10s", (second: number) => 195 - 10 * second],
  ])("moves the rate of --request-rate-ramp %s linearly", async (ramp, countIn) => {
    const { code, load } = await runOnLoop(`--request-rate-ramp ${ramp}`, quick);
    expect(code).toBe(0);
    const counts = countsBySecond(load.sentAt);
    for (let second = 0; second < 10; second++)
      expect(Math.abs(counts[second]! - countIn(second))).toBeLessThanOrEqual(1);
  });

  it("moves the requests in flight of --concurrency-ramp from one number to the other", async () => {
    const { code, load, output } = await runOnLoop("--concurrency-ramp 1:8:7s", { serviceMs: () => 10 });
    expect(code).toBe(0);
    expect(load.mostInFlight.slice(0, 7)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(output).toContain("Request concurrency: 8 (ramp)");
  });

  it("has another Poisson schedule with another --seed, and the same one with the same", async () => {
    const timesOf = async (seed: number) => {
      const line = `--request-rate-range 100 --request-distribution poisson --request-count 50 --seed ${seed}`;
      return (await runOnLoop(line, quick)).load.sentAt;
    };
    const times = await timesOf(7);
    expect(await timesOf(7)).toEqual(times);
    expect(await timesOf(8)).not.toEqual(times);
  });
});

/** Most requests take 5 ms, and each 20th takes 100 ms: 9.75 ms on average. */
const uneven = { serviceMs: (i: number) => (i % 20 === 7 ? 100 : 5) };

describe("a latency limit", () => {
  it.each([
    ["", ["1", "2", "3"]],
    [" --percentile 50", ["1", "2", "3", "4"]],
    [" --percentile 99", ["1"]],
  ])("judges a sweep with '%s' by the right figure", async (percentile, levels) => {
    const { code, output } = await runOnLoop(`--concurrency-range 1:4 -l 25${percentile}`, uneven);
    expect(code).toBe(0);
    expect(output.match(/(?<=^Concurrency: )\d+/gm)).toEqual(levels);
    expect(output.includes("Measured latency went over the set limit of 25 msec.")).toBe(
      percentile !== " --percentile 50",
    );
  });

  it.each([
    ["", "Highest level within the latency limit: Concurrency: 3, "],
    [" --percentile 50", "Highest level within the latency limit: Concurrency: 6, "],
    [" --percentile 99", "No measured level meets the latency limit."],
  ])("judges a binary search with '%s' by the right figure", async (percentile, result) => {
    const { code, output } = await runOnLoop(
      `--concurrency-range 1:16 --binary-search -l 32${percentile}`,
      uneven,
    );
    expect(code).toBe(0);
    expect(output).toContain(result);
  });

  it("is searched over request rates too", async () => {
    const { code, output } = await runOnLoop("--request-rate-range 10:300:10 --binary-search -l 15", {
      serviceMs: () => 10,
    });
    expect(code).toBe(0);
    expect(output).toMatch(/Highest level within the latency limit: Request Rate: (9\d|100), /);
  });
});
