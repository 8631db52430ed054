import { expect, it } from "vitest";
import { LiveProgress } from "../../src/report/live-progress.js";

const level = { mode: "concurrency", value: 2 } as const;

const summary = (start: number, end: number) => ({
  start,
  end,
  throughput: 10,
  requestCount: 10,
  failureCount: 0,
  meanMs: 1,
  p50Ms: 1,
  p99Ms: 2,
});

it("writes a line every 10 seconds of a long window where lines cannot be written over", () => {
  let text = "";
  const progress = new LiveProgress({
    writeError: (piece) => {
      text += piece;
    },
  });
  progress.onLevelBegin();
  for (let second = 0; second < 25; second++)
    progress.onMoment(level, summary(second * 1000, (second + 1) * 1000));
  expect(text.split("\n").filter((line) => line !== "")).toEqual([
    "concurrency 2, window 1: 10 infer/s, latency avg 1 ms, p99 2 ms",
    "concurrency 2, window 1: 10 infer/s, latency avg 1 ms, p99 2 ms",
  ]);
});
