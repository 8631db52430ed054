import { Tensor } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { type Observation, VerdictEvidence, type VerdictLimits } from "../../src/rollout/verdict.js";
import { gauss, PLANTED_FAULTS, ReleaseBench, randomOf, rollbackOf, SOUND } from "./release-bench.js";

const LIMITS: VerdictLimits = {
  alpha: 0.01,
  errors: { tolerance: 0.01 },
  latency: { ratio: 1.2 },
  agreement: { by: "class", atLeast: 0.999 },
  drift: { psi: 0.25, ks: 0.25, window: 500, reference: 1000, inputs: undefined },
};

describe("hours without a fault raise no alarm", () => {
  it("through the whole server on a virtual clock, with a canary and shadows", async () => {
    const bench = new ReleaseBench(3);
    const rollout = await bench.start({
      share: 20,
      shadow: { every: 4, maxLoad: 100 },
      verdict: { agreement: { by: "class" } },
    });
    const end = bench.clock.now() + 4 * 3600 * 1000;
    while (bench.clock.now() < end && rollout.state === "running") {
      await bench.send(1);
      await bench.clock.advance(bench.random() * 3000);
    }
    expect(rollout.verdict().reasons).toEqual([]);
    expect(rollout.state).toBe("running");
    await bench.triton.close();
  });

  it("at 5 requests a second, in 20 of 20 seeded days", () => {
    for (let seed = 1; seed <= 20; seed++) {
      const random = randomOf(seed);
      const evidence = new VerdictEvidence(LIMITS, { old: 1, new: 2 });
      const count = 24 * 3600 * 5;
      for (let i = 0; i < count; i++) {
        const start = i * 200;
        // An hour with ten times as many errors for both versions: a database that both need is slow.
        const isBad = start > 40_000_000 && start < 43_600_000;
        const isNew = random() < 0.1;
        const observation: Observation = {
          isNew,
          failed: random() < (isBad ? 0.02 : 0.002),
          class: random() < 0.5 ? "rows 1" : "rows 8",
          start,
          end: start + SOUND.latencyMs(random()) * (isBad ? 3 : 1),
          key: 0,
        };
        evidence.request(observation, 0.1);
        const tensor = Tensor.fromElements("FP32", [1], Float32Array.of(gauss(random)));
        evidence.inputs(new Map([["x", tensor]]), random);
        if (i % 16 === 0 && evidence.hasFault) break;
      }
      expect(evidence.reasons(), `seed ${seed}`).toEqual([]);
    }
  }, 300_000);
});

describe("a planted fault is rolled back within 1,000 requests in 20 of 20 seeded runs", () => {
  it.each(Object.entries(PLANTED_FAULTS))("%s", async (_, fault) => {
    for (let seed = 1; seed <= 20; seed++) {
      const { needed, checks } = await rollbackOf(fault, seed, 1001);
      expect(needed, `seed ${seed}`).toBeLessThanOrEqual(1000);
      expect(checks).toEqual([fault.check]);
    }
  });
});
