import { describe, expect, it } from "vitest";
import { comparedWithArrival, DECODERS } from "./text-report.js";
import { generateTexts, type TextOutcome } from "./text-run.js";

const RUNS = [1, 2, 3, 4].map((seed) => ({ load: 0.9, count: 2400, seed }));

describe("shortestFirst for a recorded mix of texts at 0.9 load", { timeout: 600_000 }, () => {
  it.each(["exact", "limit"] as const)(
    "brings the mean time to the last token to 0.7 at most, and no text waits three times p99, with a known length: %s",
    async (known) => {
      const { means, longestWait } = await comparedWithArrival(DECODERS[0]!, [known], RUNS);
      expect(means[known]).toBeLessThanOrEqual(0.7);
      expect(longestWait).toBeLessThanOrEqual(3);
    },
  );

  it("comes near to what interrupting running texts could reach, when four or eight run at a time", async () => {
    for (const decoder of [DECODERS[3]!, DECODERS[5]!]) {
      const { means, least, longestWait } = await comparedWithArrival(decoder, ["exact"], RUNS.slice(0, 2));
      expect(means.exact).toBeLessThanOrEqual(1.25 * least);
      expect(longestWait).toBeLessThanOrEqual(3);
    }
  });

  it("gains from what it has learnt of callers alone", async () => {
    const { means, longestWait } = await comparedWithArrival(DECODERS[0]!, ["caller"], RUNS);
    expect(means.caller).toBeLessThanOrEqual(0.92);
    expect(longestWait).toBeLessThanOrEqual(3);
  });
});

describe("texts with deadlines", () => {
  const limits: Readonly<Record<string, number>> = { chat: 15_000, code: 4_000 };
  const inTime = (outcomes: readonly TextOutcome[]) =>
    outcomes.filter(({ caller, lastTokenMs }) => lastTokenMs <= limits[caller]!).length / outcomes.length;

  it.each([
    [0.8, 0.8],
    [1.2, 0.7],
  ])("are answered in time at %d load, where the order of arrival loses most", async (load, least) => {
    const run = { load, count: 400, seed: 3 };
    const serve = (deadlines: boolean) =>
      generateTexts(DECODERS[0]!, { deadlines }, run, "exact", ({ caller }) => limits[caller]);
    const [without, by] = [await serve(false), await serve(true)];
    expect(by).toHaveLength(run.count);
    expect(inTime(by)).toBeGreaterThanOrEqual(least);
    expect(inTime(by)).toBeGreaterThan(inTime(without) + 0.2);
  });

  it("are each answered or refused once, in any order", async () => {
    const run = { load: 1.1, count: 150, seed: 5 };
    for (const batcher of [{}, { deadlines: true }, { shortestFirst: true }] as const) {
      const all = await generateTexts(DECODERS[1]!, batcher, run, "caller", () => 20_000);
      expect(all).toHaveLength(run.count);
    }
  });
});
