import { describe, expect, it } from "vitest";
import { readGoals, TokenFigures } from "../../../../src/measure/request-figures.js";
import { type RequestRow, recordsOf } from "../../support/request-rows.js";

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
