import { describe, expect, it } from "vitest";
import { CLEAR_LINE } from "../../src/command/tool-command.js";
import { levelText, settingsText, summaryText } from "../../src/report/console-report.js";
import { LiveProgress } from "../../src/report/write-report.js";
import { concurrency, levelOf, RUN, requests, serverOf } from "../support/report-run.js";

describe("console report", () => {
  it("the settings are in perf_analyzer's order", () => {
    expect(
      settingsText({ ...RUN, latencyLimitMs: 50, binarySearch: true }),
    ).toBe(`*** Measurement Settings ***
  Batch size: 1
  Service Kind: TRITON
  Using "time_windows" mode for stabilization
  Stabilizing using average latency and throughput
  Measurement window: 5000 msec
  Latency limit: 50 msec
  Concurrency limit: 4 concurrent requests
  Using Binary Search algorithm
  Using synchronous calls for inference

`);
    expect(settingsText({ ...RUN, load: "request_rate", distribution: "poisson", percentile: 95 })).toContain(
      "p95 latency and throughput",
    );
  });

  it("a level has the client's figures and the server's in perf_analyzer's order", () => {
    const server = serverOf(100, { cuts: { SIZE: 20, DELAY: 5 } });
    const text = levelText(levelOf(concurrency(4), requests(100), { server }), RUN, false);
    expect(text).toBe(`Request concurrency: 4
  Client:
    Request count: 100
    Throughput: 100 infer/sec
    Avg latency: 10000 usec (standard deviation 0 usec)
    p50 latency: 10000 usec
    p90 latency: 10000 usec
    p95 latency: 10000 usec
    p99 latency: 10000 usec
    Avg HTTP time: 10000 usec (send/recv 3000 usec + response wait 7000 usec)
  Server:
    Inference count: 100
    Execution count: 25
    Successful request count: 100
    Avg request latency: 6000 usec (overhead 1250 usec + queue 1000 usec + compute input 500 usec + compute infer 3000 usec + compute output 250 usec)
    Batch sizes: 4 (25x); avg 4
    Batches cut by: SIZE (20x), DELAY (5x)

`);
  });

  it("a level of a request rate shows the latency from the actual send too", () => {
    const level = { mode: "request_rate", value: 10, distribution: "constant" } as const;
    const text = levelText(levelOf(level, [{ scheduled: 0, sent: 40, end: 50 }]), RUN, true);
    expect(text).toContain("Request Rate: 10 inference requests per seconds\n");
    expect(text).toContain("Avg client overhead: 0.00%\n");
    expect(text).toContain("Avg latency: 50000 usec");
    expect(text).toContain("Latency from the actual send: avg 10000 usec, p50 10000 usec, p99 10000 usec\n");
  });

  it("a percentile replaces the average, and gRPC has its own words", () => {
    const text = levelText(
      levelOf(concurrency(1), requests(10)),
      { ...RUN, percentile: 75, protocol: "grpc" },
      false,
    );
    expect(text).not.toContain("Avg latency");
    expect(text).toContain("    p75 latency: 10000 usec\n    p90");
    expect(text).toContain(
      "Avg gRPC time: 10000 usec ((un)marshal request/response 3000 usec + response wait 7000 usec)",
    );
  });

  it("an ensemble shows its composing models in blocks", () => {
    const server = serverOf(4, { composing: [serverOf(4, { name: "step", version: "3" })] });
    const text = levelText(levelOf(concurrency(1), requests(4), { server }), RUN, false);
    expect(text).toContain(
      "(overhead 1250 usec + queue 1000 usec + compute 3750 usec)\n\n    Composing models:\n",
    );
    expect(text).toContain("    step, version: 3\n        Inference count: 4\n");
  });

  it("a response cache has its own lines", () => {
    const base = serverOf(10);
    const stages = { ...base.stages, cacheHit: { count: 5, ns: 5e6 }, cacheMiss: { count: 5, ns: 10e6 } };
    const text = levelText(
      levelOf(concurrency(1), requests(10), { server: { ...base, stages } }),
      RUN,
      false,
    );
    expect(text).toContain("Cache hit count: 5\n    Cache miss count: 5\n");
    expect(text).toContain("+ cache hit/miss 1500 usec + compute 3750 usec)");
    expect(text).toContain("Average Cache Hit Latency: 1000 usec\n");
    expect(text).toContain(
      "Average Cache Miss Latency: 5750 usec (cache lookup/insertion 2000 usec + compute 3750 usec)",
    );
  });

  it("an unstable level and a fault are marked, also in the summary", () => {
    const unstable = levelOf(concurrency(1), requests(5), { instability: "latency" });
    const failed = levelOf(concurrency(2), [{ sent: 0, end: 1, error: "gone" }], {
      fault: { kind: "all failed", text: "every request failed: gone" },
    });
    expect(levelText(unstable, RUN, false)).toContain(
      "[WARNING] Failed to obtain stable measurement: the latency of the last 3 windows differ by more than 10%.",
    );
    expect(levelText(failed, RUN, false)).toContain("    Failed request count: 1\n      1 x gone\n[ERROR]");
    expect(levelText(failed, RUN, false)).toContain("[ERROR] every request failed: gone");
    expect(summaryText([unstable, failed], RUN)).toBe(
      "Inferences/Second vs. Client Average Batch Latency\n" +
        "Concurrency: 1, throughput: 5 infer/sec, latency 10000 usec (unstable)\n" +
        "Concurrency: 2, throughput: 0 infer/sec, latency 0 usec (failed)\n",
    );
  });
});

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

/** Screen of a terminal with one line, as `\r` and the control sequence for clearing a line leave it. */
class Screen {
  readonly isInteractive = true;
  /** The line after each write. */
  readonly shown: string[] = [];
  #line = "";

  constructor(readonly columns?: number) {}

  writeError(text: string): void {
    expect(text).not.toContain("\n");
    this.#line = text.startsWith(CLEAR_LINE) ? text.slice(CLEAR_LINE.length) : this.#line + text;
    this.shown.push(this.#line);
  }
}

describe("live progress", () => {
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

  it("writes over one line of a terminal, with the queue once it is known, and clears it at the end", () => {
    const screen = new Screen();
    const progress = new LiveProgress(screen);
    progress.onLevelBegin();
    progress.onMoment(level, summary(0, 500));
    progress.onWindow(level, { ...summary(0, 1000), queueMs: 0.25 }, 1);
    progress.onMoment(level, summary(1000, 1500));
    progress.onLevel();
    expect(screen.shown).toEqual([
      "concurrency 2, window 1: 10 infer/s, latency avg 1 ms, p99 2 ms",
      "concurrency 2, window 2: 10 infer/s, latency avg 1 ms, p99 2 ms, queue 250 µs",
      "",
    ]);
  });

  it("cuts the line to the width of the terminal, so that it stays one line", () => {
    const screen = new Screen(40);
    const progress = new LiveProgress(screen);
    progress.onMoment(level, summary(0, 500));
    expect(screen.shown).toEqual(["concurrency 2, window 1: 10 infer/s, la"]);
  });
});
