import { describe, expect, it } from "vitest";
import { LoopBench } from "../support/loop-bench.js";

const LEVEL = { mode: "periodic_concurrency", start: 2, end: 7, step: 3, responses: 3 } as const;

/** A response each 10 ms. */
const responding = (count: number) => ({
  responsesMs: Array.from({ length: count }, (_, i) => 10 * (i + 1)),
  endMs: 10 * count,
});

describe("a periodic concurrency", () => {
  it("sends the next batch when all requests of the last one have their responses", async () => {
    // The second request is slower: its third response comes after 45 ms.
    const bench = new LoopBench((n) =>
      n === 1 ? { responsesMs: [15, 30, 45], endMs: 100 } : { ...responding(5), endMs: 100 },
    );
    const run = bench.loop.run(LEVEL, LEVEL.end, 0);
    await bench.clock.advance(300);
    await run;
    // 2, then 3 more, then the 2 that are left of 7 in all.
    expect(bench.sent.map(({ at }) => at)).toEqual([0, 0, 45, 45, 45, 75, 75]);
    expect(bench.loop.take().records.count).toBe(7);
  });

  it("goes on when a request ends before it has its responses", async () => {
    const bench = new LoopBench((n) =>
      n === 0 ? { responsesMs: [], endMs: 50, failure: "boom" } : responding(3),
    );
    const run = bench.loop.run(LEVEL, LEVEL.end, 0);
    await bench.clock.advance(300);
    await run;
    expect(bench.sent.map(({ at }) => at)).toEqual([0, 0, 50, 50, 50, 80, 80]);
    expect(bench.loop.take().records.errors).toEqual(["boom"]);
  });

  it("ends with the batch in flight when it is paused", async () => {
    const bench = new LoopBench(() => responding(3));
    const run = bench.loop.run(LEVEL, LEVEL.end, 0);
    await bench.clock.advance(5);
    const paused = bench.loop.pause();
    await bench.clock.advance(300);
    await Promise.all([run, paused]);
    expect(bench.sent).toHaveLength(2);
  });

  it("is sent by the first of several threads", async () => {
    const bench = new LoopBench(() => responding(3), { index: 1, count: 2 });
    await bench.loop.run(LEVEL, LEVEL.end, 0);
    expect(bench.sent).toEqual([]);
  });
});
