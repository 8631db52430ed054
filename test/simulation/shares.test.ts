import { describe, expect, it } from "vitest";
import { type SharedModel, serveCallers } from "./shares.js";

const SMALL = { name: "small", load: 0.1 };
const BIG = { name: "big", load: 3 };
const ONE_BY_ONE: SharedModel = { fixedMs: 20, perRowMs: 0, maxBatchSize: 1, limitMs: 200 };
const CPU_LIKE: SharedModel = { fixedMs: 2, perRowMs: 5, maxBatchSize: 4, limitMs: 150 };
const GPU_LIKE: SharedModel = { fixedMs: 10, perRowMs: 0.5, maxBatchSize: 32, limitMs: 100 };

describe("a caller at a tenth of the capacity beside one at three times the capacity", () => {
  it("loses most of its requests to a queue without shares", async () => {
    const { small } = await serveCallers(ONE_BY_ONE, [SMALL, BIG], { deadlines: true });
    expect(small!.inTime).toBeLessThan(0.4);
  });

  it.each([
    ["one by one", ONE_BY_ONE, 1.5],
    ["CPU-like", CPU_LIKE, 1.5],
    ["GPU-like", GPU_LIKE, 2.1],
  ])("is answered in time with shares, nearly as quickly as alone: %s", async (_, model, slower) => {
    for (const batcher of [
      { shares: { by: "caller" }, deadlines: true },
      { shares: { by: "caller" }, defaultQueuePolicy: { maxQueueSize: 100 } },
    ]) {
      const alone = await serveCallers(model, [SMALL], batcher);
      const { small, big } = await serveCallers(model, [SMALL, BIG], batcher);
      expect(small!.inTime).toBeGreaterThanOrEqual(0.99);
      expect(small!.p99).toBeLessThanOrEqual(slower * alone.small!.p99);
      const capacity = model.maxBatchSize / (model.fixedMs + model.perRowMs * model.maxBatchSize);
      expect(small!.rowsPerMs + big!.rowsPerMs).toBeGreaterThanOrEqual(0.9 * capacity);
    }
  });

  it("gets what its weight says when both send too much", async () => {
    const { small, big } = await serveCallers(CPU_LIKE, [{ ...SMALL, load: 3 }, BIG], {
      shares: { by: "caller", weights: { small: 3 } },
      deadlines: true,
    });
    expect(small!.rowsPerMs / (small!.rowsPerMs + big!.rowsPerMs)).toBeCloseTo(0.75, 1);
  });
});
