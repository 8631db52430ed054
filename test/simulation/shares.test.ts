import { configuredBatchers, deadlines, fairShares } from "@tritonjs/scheduling";
import { describe, expect, it } from "vitest";
import { type SharedModel, serveCallers, serveCallersOf } from "./shares.js";

const SMALL = { name: "small", load: 0.1 };
const BIG = { name: "big", load: 3 };
const SHARED = deadlines({ shares: { by: "caller" } });
const ONE_BY_ONE: SharedModel = { fixedMs: 20, perRowMs: 0, maxBatchSize: 1, limitMs: 200 };
const CPU_LIKE: SharedModel = { fixedMs: 2, perRowMs: 5, maxBatchSize: 4, limitMs: 150 };
const GPU_LIKE: SharedModel = { fixedMs: 10, perRowMs: 0.5, maxBatchSize: 32, limitMs: 100 };

describe("a caller at a tenth of the capacity beside one at three times the capacity", () => {
  it("loses most of its requests to a queue without shares", async () => {
    const { small } = await serveCallers(ONE_BY_ONE, [SMALL, BIG], deadlines());
    expect(small!.inTime).toBeLessThan(0.4);
  });

  it.each([
    [
      "one by one with a limited queue",
      ONE_BY_ONE,
      0.95,
      fairShares({ by: "caller", defaultQueuePolicy: { maxQueueSize: 100 } }),
    ],
    ["CPU-like with deadlines", CPU_LIKE, 0.75, SHARED],
    ["GPU-like with deadlines", GPU_LIKE, 0.6, SHARED],
  ])("is answered in time with shares, nearly as quickly as alone: %s", async (_, model, least, batcher) => {
    const alone = await serveCallers(model, [SMALL], batcher);
    const { small, big } = await serveCallers(model, [SMALL, BIG], batcher);
    expect(small!.inTime).toBeGreaterThanOrEqual(0.99);
    expect(small!.p99).toBeLessThanOrEqual(1.5 * alone.small!.p99);
    const capacity = model.maxBatchSize / (model.fixedMs + model.perRowMs * model.maxBatchSize);
    expect(small!.rowsPerMs + big!.rowsPerMs).toBeGreaterThanOrEqual(least * capacity);
  });

  it.each([
    ["0.45 and 0.45", [0.45, 0.45]],
    ["0.1 and 0.85", [0.1, 0.85]],
  ])(
    "loses nothing to smaller batches while all callers together send less than the capacity: %s",
    async (_, loads) => {
      const callers = loads.map((load, i) => ({ name: `caller ${i}`, load }));
      const served = await serveCallers(GPU_LIKE, callers, SHARED);
      for (const { inTime } of Object.values(served)) expect(inTime).toBeGreaterThanOrEqual(0.99);
    },
  );

  it("is served in large batches beside three big callers while it nearly uses up its share", async () => {
    const big = [1, 2, 3].map((i) => ({ name: `big ${i}`, load: 1 }));
    const batcher = SHARED;
    const served = await serveCallers(GPU_LIKE, [{ name: "small", load: 0.2 }, ...big], batcher);
    const { fixedMs, perRowMs, maxBatchSize } = GPU_LIKE;
    const rate = Object.values(served).reduce((sum, { rowsPerMs }) => sum + rowsPerMs, 0);
    expect(rate).toBeGreaterThanOrEqual((0.9 * maxBatchSize) / (fixedMs + perRowMs * maxBatchSize));
    expect(served.small!.inTime).toBeGreaterThanOrEqual(0.99);
  });

  it("is hardly slowed beside two others of its kind, whose requests run with its own", async () => {
    const model: SharedModel = { fixedMs: 1, perRowMs: 2, maxBatchSize: 8, limitMs: 100 };
    const batcher = SHARED;
    const small = ["a", "b", "c"].map((name) => ({ name, load: 0.1 }));
    const alone = await serveCallers(model, small, batcher);
    const beside = await serveCallers(model, [...small, BIG], batcher);
    for (const { name } of small) {
      expect(beside[name]!.inTime).toBeGreaterThanOrEqual(0.99);
      expect(beside[name]!.p99).toBeLessThanOrEqual(1.4 * alone[name]!.p99);
    }
  });

  it("waits for a short batch even if it sends a request every two seconds", async () => {
    const model: SharedModel = { fixedMs: 2, perRowMs: 6, maxBatchSize: 8, limitMs: 250 };
    const batcher = SHARED;
    const rare = { name: "rare", load: 0.003 };
    const served = await serveCallers(model, [rare, BIG], batcher, { durationMs: 150_000, seed: 3 });
    expect(served.rare!.inTime).toBe(1);
    expect(served.rare!.p99).toBeLessThanOrEqual(2.2 * (model.fixedMs + model.perRowMs));
  });

  it("gets what its weight says when both send too much", async () => {
    const { small, big } = await serveCallers(
      CPU_LIKE,
      [{ ...SMALL, load: 3 }, BIG],
      deadlines({ shares: { by: "caller", weights: { small: 3 } } }),
    );
    expect(small!.rowsPerMs / (small!.rowsPerMs + big!.rowsPerMs)).toBeCloseTo(0.75, 1);
  });
});

describe("callers of several models", () => {
  const FAST: SharedModel = { fixedMs: 1, perRowMs: 2, maxBatchSize: 8, limitMs: 100 };
  const SLOW: SharedModel = { fixedMs: 2, perRowMs: 6, maxBatchSize: 8, limitMs: 200 };

  const texts = { deadlines: "true", shares_by: "caller", shares_common: "true" };
  const TOGETHER = {
    parameters: Object.fromEntries(
      Object.entries(texts).map(([name, stringValue]) => [name, { stringValue }]),
    ),
  };

  it("are charged for the time of all models together", async () => {
    const run = { cores: 2, durationMs: 15_000 };
    const together = configuredBatchers()({
      name: "m",
      version: 1,
      config: TOGETHER as never,
      isGrouped: false,
    })!;
    const alone = await serveCallersOf([FAST, SLOW], [SMALL], together, run);
    const { small } = await serveCallersOf([FAST, SLOW], [SMALL, BIG], together, run);
    expect(small!.inTime).toBeGreaterThanOrEqual(0.99);
    expect(small!.p99).toBeLessThanOrEqual(1.5 * alone.small!.p99);
  });
});
