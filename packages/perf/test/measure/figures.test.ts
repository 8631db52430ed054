import { describe, expect, it } from "vitest";
import { Distribution } from "../../src/measure/distribution.js";
import { generatorWarnings } from "../../src/measure/level-result.js";
import { RunPieces } from "../../src/measure/measure-level.js";
import {
  instabilityOf,
  mergeFigures,
  RequestFigures,
  readGoals,
  TokenFigures,
} from "../../src/measure/request-figures.js";
import { type RequestRow, recordsOf, windowOf } from "../support/request-rows.js";
import { seededNumbers } from "../support/simulated-load.js";

function plainPercentile(sorted: readonly number[], percentile: number): number {
  return sorted[Math.max(0, Math.ceil((percentile / 100) * sorted.length) - 1)]!;
}

describe("a distribution", () => {
  it("agrees with sorted values within a thousandth, over eight orders of magnitude", () => {
    const random = seededNumbers(3);
    const values = Array.from({ length: 5000 }, () => 10 ** (random() * 8 - 3));
    const distribution = new Distribution();
    for (const value of values) distribution.record(value);
    const sorted = values.toSorted((a, b) => a - b);
    for (const percentile of [1, 5, 25, 50, 75, 90, 95, 99, 99.9, 100]) {
      const expected = plainPercentile(sorted, percentile);
      expect(Math.abs(distribution.percentile(percentile) / expected - 1)).toBeLessThan(0.0011);
    }
    expect([distribution.min, distribution.max]).toEqual([sorted[0], sorted.at(-1)]);
  });

  it("keeps an exact mean and deviation when parts are added", () => {
    const values = Array.from({ length: 999 }, (_, i) => 1e6 + (i % 7));
    const parts = [new Distribution(), new Distribution(), new Distribution()];
    const whole = new Distribution();
    values.forEach((value, i) => {
      parts[i % 3]!.record(value);
      whole.record(value);
    });
    const merged = new Distribution();
    for (const part of parts) merged.add(part);
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
    expect(merged.mean).toBeCloseTo(mean, 6);
    expect(merged.deviation).toBeCloseTo(Math.sqrt(squares / (values.length - 1)), 6);
    expect(merged.deviation).toBeCloseTo(whole.deviation, 9);
    expect(merged.count).toBe(999);
  });

  it("has no figures without values, and no deviation for one value", () => {
    const distribution = new Distribution();
    expect([distribution.mean, distribution.percentile(50), distribution.min]).toEqual([NaN, NaN, NaN]);
    distribution.record(5);
    expect(distribution.deviation).toBeNaN();
    expect(distribution.percentile(99)).toBe(5);
  });

  it("divides its values into bars that contain each of them once", () => {
    const distribution = new Distribution();
    for (let i = 0; i < 1000; i++) distribution.record(i / 10);
    const bars = distribution.bars(10);
    expect(bars.reduce((sum, { count }) => sum + count, 0)).toBe(1000);
    for (const { count } of bars) expect(Math.abs(count - 100)).toBeLessThan(6);
    expect(new Distribution().bars(5)).toEqual([]);
  });
});

function figuresOf(...windows: ReturnType<typeof windowOf>[]): RequestFigures {
  const figures = new RequestFigures({ batchSize: 4 });
  const sequences = new Set<number>();
  for (const window of windows) figures.addWindow(window, sequences);
  return figures;
}

describe("figures of requests", () => {
  it("divide the latency into sending, waiting and receiving", () => {
    const figures = figuresOf(
      windowOf(0, 1000, [
        { sent: 0, sendEnd: 2, firstResponse: 10, end: 11 },
        { sent: 100, sendEnd: 104, firstResponse: 120, end: 123 },
      ]),
    );
    expect(figures.meanSendMs).toBe(3);
    expect(figures.meanWaitMs).toBe(12);
    expect(figures.meanReceiveMs).toBe(2);
    expect(figures.throughput).toBe(8);
  });

  it("count failures by their text, and not in the latency", () => {
    const failed = { sent: 0, end: 5000, error: "no route" };
    const figures = figuresOf(windowOf(0, 1000, [{ sent: 0, end: 10 }, failed, failed]));
    expect(figures.latency.mean).toBe(10);
    expect(figures.failureCount).toBe(2);
    expect(figures.failureShare).toBeCloseTo(2 / 3, 9);
    expect([...figures.failures]).toEqual([["no route", 2]]);
  });

  it("count a sequence once although its requests end in several windows", () => {
    const first = windowOf(0, 1000, [
      { sent: 0, end: 1, sequence: 7 },
      { sent: 1, end: 2, sequence: 8 },
    ]);
    const second = windowOf(1000, 2000, [
      { sent: 1000, end: 1001, sequence: 8 },
      { sent: 1001, end: 1002, sequence: 9 },
    ]);
    expect(figuresOf(first, second).sequenceCount).toBe(3);
  });

  it("of merged windows are those of one window with all requests", () => {
    const rows = Array.from({ length: 300 }, (_, i) => ({ sent: i * 10, end: i * 10 + (i % 17) + 1 }));
    const parts = [0, 1, 2].map((part) =>
      figuresOf(windowOf(part * 1000, part * 1000 + 1000, rows.slice(part * 100, part * 100 + 100))),
    );
    const merged = mergeFigures(parts, { batchSize: 4 });
    const whole = figuresOf(windowOf(0, 3000, rows));
    expect(merged.throughput).toBeCloseTo(whole.throughput, 9);
    expect(merged.latency.percentile(95)).toBe(whole.latency.percentile(95));
    expect(merged.latency.deviation).toBeCloseTo(whole.latency.deviation, 9);
    expect(merged.durationMs).toBe(3000);
  });
});

describe("stability", () => {
  const windows = (latencies: readonly number[]) =>
    latencies.map((latency) => figuresOf(windowOf(0, 1000, [{ sent: 0, end: latency }])));

  it("compares the largest with the smallest of the last three windows", () => {
    expect(instabilityOf(windows([50, 100, 105, 110]), { percentage: 10 })).toBeUndefined();
    expect(instabilityOf(windows([100, 105, 111]), { percentage: 10 })).toBe("latency");
    expect(instabilityOf(windows([100, 100]), { percentage: 10 })).toBe("too few windows");
  });

  it("compares the chosen percentile instead of the mean", () => {
    const one = (worst: number) =>
      figuresOf(
        windowOf(0, 1000, [
          ...Array.from({ length: 99 }, () => ({ sent: 0, end: 10 })),
          { sent: 0, end: worst },
        ]),
      );
    const last = [one(20), one(60), one(20)];
    expect(instabilityOf(last, { percentage: 10 })).toBeUndefined();
    expect(instabilityOf(last, { percentage: 10, percentile: 100 })).toBe("latency");
  });

  it("refuses windows without a request", () => {
    const empty = figuresOf(windowOf(0, 1000, []));
    expect(instabilityOf([empty, empty, empty], { percentage: 10 })).toBe("throughput and latency");
  });
});

describe("warnings about the generator", () => {
  const level = { mode: "request_rate", value: 1, distribution: "constant" } as const;
  const warningsOf = (usage: Parameters<typeof windowOf>[3]) => {
    const figures = figuresOf(windowOf(0, 1000, [{ sent: 0, end: 10 }], usage));
    const result = { level, figures, overLimit: false, interrupted: false, timeline: [], trials: 1 };
    return generatorWarnings(result, 4);
  };

  it("are absent when it is idle", () => {
    expect(warningsOf({ eventLoopUtilization: 0.5, idle: 0.8 })).toEqual([]);
    expect(warningsOf({ cpuUtilization: 0.85, cpuMs: 3500 })).toEqual([]);
  });

  it("tell that a thread was busy, that requests waited for it, and that they were sent late", () => {
    expect(warningsOf({ eventLoopUtilization: 0.97 })).toEqual([expect.stringContaining("busy for 97.0%")]);
    expect(warningsOf({ idle: 0.4 })).toEqual([
      expect.stringContaining("not able to keep up with the desired load"),
    ]);
    expect(warningsOf({ delayed: 1 })).toEqual([
      expect.stringContaining("100.0% of the requests were delayed"),
    ]);
  });

  it("tell that a thread used a core all the time, instead of that it was busy", () => {
    expect(warningsOf({ cpuUtilization: 0.96, eventLoopUtilization: 0.99 })).toEqual([
      "A thread of the generator used a CPU core for 96.0% of the time, so the generator may be the bottleneck; " +
        "try a higher --max-threads, or another machine for it.",
    ]);
  });

  it("tell that the threads together used the cores of the machine", () => {
    expect(warningsOf({ cpuUtilization: 0.93 / 1.1, cpuMs: 3720 })).toEqual([
      "The generator used 3.7 of the 4 CPU cores of this machine, so it may be the bottleneck, also for a server on " +
        "this machine; start it on another machine.",
    ]);
  });

  it("judge the CPU time of a level by all of its windows", () => {
    const rows = [{ sent: 0, end: 10 }];
    const figures = figuresOf(
      windowOf(0, 100, rows, { cpuUtilization: 1, cpuMs: 190 }),
      windowOf(100, 1000, rows, { cpuUtilization: 0.5, cpuMs: 450 }),
    );
    expect(figures.cpuUtilization).toBeCloseTo(0.55, 9);
    expect(figures.cpuCores).toBeCloseTo(0.64, 9);
  });
});

const spans = (windows: readonly { readonly start: number; readonly end: number }[]) =>
  windows.map(({ start, end }) => [start, end]);

describe("the pieces of a run", () => {
  it("last from the first send to the last end, without the time before and after", () => {
    const pieces = new RunPieces();
    expect(spans(pieces.next(windowOf(0, 1000, [])))).toEqual([]);
    expect(spans(pieces.next(windowOf(1000, 2000, [{ sent: 900, end: 1500 }])))).toEqual([[900, 2000]]);
    expect(spans(pieces.next(windowOf(2000, 3000, [])))).toEqual([[2000, 3000]]);
    expect(spans(pieces.last(windowOf(3000, 4000, [{ sent: 2500, end: 3200 }])))).toEqual([[3000, 3200]]);
  });

  it("are one window where a run ends within a piece", () => {
    const rows = [
      { scheduled: 20, sent: 25, end: 40 },
      { scheduled: 30, sent: Number.NaN, end: 60, error: "cannot connect" },
    ];
    expect(spans(new RunPieces().last(windowOf(0, 1000, rows)))).toEqual([[20, 60]]);
  });

  it("end with the piece before where the last one has no requests", () => {
    const pieces = new RunPieces();
    pieces.next(windowOf(0, 1000, [{ sent: 10, end: 900 }]));
    expect(pieces.last(windowOf(1000, 1001, []))).toEqual([]);
  });
});

describe("token figures", () => {
  function figuresOf(rows: readonly RequestRow[], goals = "", streaming = true): TokenFigures {
    const figures = new TokenFigures({ streaming, goals: readGoals(goals) });
    const records = recordsOf(rows);
    for (let i = 0; i < records.count; i++) figures.addRequest(records, i);
    return figures;
  }

  /** 5 tokens in 3 chunks: the first after 40 ms, the last after 120 ms. */
  const row: RequestRow = { sent: 1000, times: [1040, 1060, 1120], tokens: [1, 2, 2], end: 1120 };

  describe("figures of streams of tokens", () => {
    it("follow AIPerf's formulas", () => {
      const { distributions, outputTokens } = figuresOf([row]);
      const mean = (name: keyof typeof distributions) => distributions[name].mean;
      expect(mean("time_to_first_token")).toBe(40);
      expect(mean("time_to_second_token")).toBe(20);
      expect(mean("request_latency")).toBe(120);
      expect(mean("inter_token_latency")).toBe(20);
      expect(mean("output_token_throughput_per_user")).toBe(50);
      expect(mean("output_sequence_length")).toBe(5);
      expect(distributions.inter_chunk_latency.count).toBe(2);
      expect(distributions.inter_chunk_latency.max).toBe(60);
      expect(outputTokens).toBe(5);
    });

    it("divide the sums by the time from the first send to the last response", () => {
      const figures = figuresOf([row, { ...row, sent: 1500, times: [1600, 2980, 3000], end: 3000 }]);
      expect(figures.benchmarkDuration).toBe(2);
      expect(figures.outputTokenThroughput).toBe(5);
      expect(figures.requestThroughput).toBe(1);
    });

    it("count each response as a token where the target does not tell tokens", () => {
      const figures = figuresOf([{ sent: 0, times: [10, 20, 30, 40], end: 40 }]);
      expect(figures.distributions.output_sequence_length.mean).toBe(4);
      expect(figures.distributions.inter_token_latency.mean).toBe(10);
    });

    it("have no time to the first token without streaming, and no latency between tokens for one token", () => {
      expect(figuresOf([row], "", false).distributions.time_to_first_token.count).toBe(0);
      const single = figuresOf([{ sent: 0, times: [10], tokens: [1], end: 10 }]);
      expect(single.distributions.time_to_first_token.count).toBe(1);
      expect(single.distributions.inter_token_latency.count).toBe(0);
    });

    it("leave failed requests out", () => {
      const figures = figuresOf([row, { sent: 0, end: 9000, error: "gone" }]);
      expect([figures.requestCount, figures.errorCount, figures.benchmarkDuration]).toEqual([1, 1, 0.12]);
    });
  });

  describe("goodput", () => {
    it("counts the requests that meet every limit; a value that is missing meets none", () => {
      const slow = { ...row, sent: 900 };
      const short = { sent: 1000, times: [1010], tokens: [1], end: 1010 };
      const rows = [row, slow, short];
      expect(figuresOf(rows, "time_to_first_token:100").goodCount).toBe(2);
      expect(figuresOf(rows, "time_to_first_token:200 inter_token_latency:20").goodCount).toBe(2);
      expect(figuresOf(rows, "output_token_throughput_per_user:50").goodCount).toBe(2);
      expect(figuresOf(rows).goodCount).toBe(3);
    });

    it("refuses limits that cannot be read", () => {
      expect(() => readGoals("latency:5")).toThrow("goodput: expected one of time_to_first_token,");
      expect(() => readGoals("request_latency:fast")).toThrow(
        "goodput: expected a number for request_latency, got 'fast'",
      );
    });
  });
});
