import { describe, expect, it } from "vitest";
import { PLANTED_FAULTS, rollbackOf } from "./release-bench.js";

const MOST_REQUESTS = 1000;

/** Runs of each fault. The long layer has twenty of them, in verdicts.long.test.ts. */
const SEEDS = [1, 2];

describe("a planted fault is rolled back within 1,000 requests", () => {
  it.each(Object.entries(PLANTED_FAULTS))("%s", async (_, fault) => {
    for (const seed of SEEDS) {
      const { needed, checks } = await rollbackOf(fault, seed, MOST_REQUESTS + 1);
      expect(needed, `seed ${seed}`).toBeLessThanOrEqual(MOST_REQUESTS);
      expect(checks).toEqual([fault.check]);
    }
  });
});
