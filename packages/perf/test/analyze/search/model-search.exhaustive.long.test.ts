import { describe, expect, it } from "vitest";
import { bestRun, type SearchGoal } from "../../../src/analyze/candidate.js";
import { modelSearch } from "../../../src/analyze/model-search.js";
import { bruteSearch } from "../../../src/analyze/quick-search.js";
import {
  analysisOf,
  type DurationRule,
  SimulatedMachine,
  sharedCores,
} from "../../support/simulated-machine.js";

const space = { instances: [1, 2], maxBatchSize: [1, 2, 4, 8, 16], queueDelayMicroseconds: [0, 1000, 3000] };

/** Batches of more than 8 rows no longer fit into the cache. */
const steep: DurationRule = (rows, { instances = 1 }) =>
  (2 + rows + (rows > 8 ? 4 * (rows - 8) : 0)) * (1 + 0.8 * (instances - 1));

const goals: readonly SearchGoal[] = [
  { objectives: { perf_throughput: 1 }, constraints: {} },
  { objectives: { perf_latency_p99: 1 }, constraints: { perf_throughput: { min: 400 } } },
];

describe("the search with a model of the machine", () => {
  it.each([
    ["durations on a line", sharedCores],
    ["durations with a bend", steep],
  ])("finds what an exhaustive search finds, with few measurements: %s", async (_, rule) => {
    const all = analysisOf(new SimulatedMachine(rule));
    await bruteSearch(all, { m: space });
    for (const goal of goals) {
      const found = analysisOf(new SimulatedMachine(rule), { goal });
      await modelSearch(found, "m", space, { verify: 3 });
      const best = all.results.flatMap(({ runs }) => runs);
      const [tag] = Object.keys(goal.objectives) as ["perf_throughput" | "perf_latency_p99"];
      const [searched, exhaustive] = [found.best!.runs, best].map(
        (runs) => bestRun(runs, goal)!.models.m!.figures[tag],
      );
      const ratio = searched! / exhaustive!;
      expect(tag === "perf_throughput" ? ratio : 1 / ratio).toBeGreaterThan(0.95);
      expect(found.measurements).toBeLessThanOrEqual(1 + 6 + 3);
      expect(all.measurements).toBe(1 + 2 * (1 + 4 * 3));
    }
  });
});
