import { describe, expect, it } from "vitest";
import { gauss, ReleaseBench, SOUND, type VersionBehaviour } from "./release-bench.js";

const RUNS = 20;
const MOST_REQUESTS = 1000;

/** Plants a fault after some sound requests, and returns how many requests it took to roll the version back, by seed. */
async function requestsUntilRollback(
  fault: Partial<VersionBehaviour>,
  options: Parameters<ReleaseBench["start"]>[0] = {},
  soundRequests = 0,
): Promise<{ needed: number[]; checks: Set<string> }> {
  const needed: number[] = [];
  const checks = new Set<string>();
  for (let seed = 1; seed <= RUNS; seed++) {
    const bench = new ReleaseBench(seed);
    const rollout = await bench.start(options);
    await bench.send(soundRequests);
    expect(rollout.state).toBe("running");
    bench.behaviour[2] = { ...SOUND, ...fault };
    needed.push(await bench.send(MOST_REQUESTS + 1));
    for (const { check } of rollout.verdict().reasons) checks.add(check);
    await bench.triton.close();
  }
  return { needed, checks };
}

describe("a planted fault is rolled back within 1,000 requests in 20 of 20 seeded runs", () => {
  it("5 points more errors", async () => {
    const { needed, checks } = await requestsUntilRollback({ fails: (random) => random < 0.052 });
    expect(Math.max(...needed)).toBeLessThanOrEqual(MOST_REQUESTS);
    expect([...checks]).toEqual(["errors"]);
  });

  it("p99 times 1.5", async () => {
    const latencyMs = (random: number) => 1.5 * SOUND.latencyMs(random);
    const { needed, checks } = await requestsUntilRollback({ latencyMs });
    expect(Math.max(...needed)).toBeLessThanOrEqual(MOST_REQUESTS);
    expect([...checks]).toEqual(["latency"]);
  });

  it("another class in 2% of the answers", async () => {
    const classOf = (x: number, random: number) => Number(x > 0 !== random < 0.02);
    const { needed, checks } = await requestsUntilRollback(
      { classOf },
      { share: 0, shadow: { maxLoad: 100 }, verdict: { agreement: { by: "class" } } },
    );
    expect(Math.max(...needed)).toBeLessThanOrEqual(MOST_REQUESTS);
    expect([...checks]).toEqual(["agreement"]);
  });

  it("a PSI of the input over 0.25", async () => {
    const needed: number[] = [];
    for (let seed = 1; seed <= RUNS; seed++) {
      const bench = new ReleaseBench(seed);
      const rollout = await bench.start();
      await bench.send(1300);
      expect(rollout.state).toBe("running");
      // The PSI of two normal distributions that are moved by d is d squared: 0.36 here.
      needed.push(await bench.send(MOST_REQUESTS + 1, () => 0.6 + gauss(bench.random)));
      expect(rollout.verdict().reasons.map(({ check }) => check)).toEqual(["drift"]);
      await bench.triton.close();
    }
    expect(Math.max(...needed)).toBeLessThanOrEqual(MOST_REQUESTS);
  });
});
