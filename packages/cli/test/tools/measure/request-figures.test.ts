import { describe, expect, it } from "vitest";
import { generatorWarnings } from "../../../src/measure/level-result.js";
import { instabilityOf, mergeFigures, RequestFigures } from "../../../src/measure/request-figures.js";
import { windowOf } from "../support/request-rows.js";

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
