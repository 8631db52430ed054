import { describe, expect, it } from "vitest";
import { MOST_PREFILL_TOKENS, PrefillPace } from "../../src/decoder/prefill-pace.js";
import { type CopyWish, copyTexts } from "../support/copying-graph.js";

describe("the tokens of prompts in a step", () => {
  it("are as many as take four fifths of the time of a step for tokens", () => {
    const pace = new PrefillPace();
    expect(pace.limit(true)).toBe(16);
    pace.tookDecode(10);
    for (let i = 0; i < 10; i++) pace.tookPrefill(2 + 0.25 * pace.limit(true), pace.limit(true));
    expect(pace.limit(true)).toBeGreaterThanOrEqual(22);
    expect(pace.limit(true)).toBeLessThanOrEqual(24);
  });

  it("fall at once when a part was slow, and stay above the fewest", () => {
    const pace = new PrefillPace();
    pace.tookDecode(5);
    pace.tookPrefill(20, 16);
    expect(pace.limit(true)).toBe(4);
    pace.tookPrefill(1000, 4);
    expect(pace.limit(true)).toBe(4);
  });

  it("do not fall because a prompt ended early", () => {
    const pace = new PrefillPace();
    pace.tookDecode(10);
    pace.tookPrefill(0.5, 1);
    expect(pace.limit(true)).toBe(16);
  });

  it("are many while no text waits, and fixed if they are given", () => {
    expect(new PrefillPace().limit(false)).toBe(MOST_PREFILL_TOKENS);
    const fixed = new PrefillPace(64);
    fixed.tookDecode(1);
    fixed.tookPrefill(100, 64);
    expect([fixed.limit(true), fixed.limit(false)]).toEqual([64, 64]);
  });
});

/** Costs of a run in milliseconds: a part for the weights, one for each token, and one for its attention to the past. */
const COSTS = {
  "a small model": (tokens: number, past: number) => 1 + 0.3 * tokens + 0.0001 * tokens * past,
  "a model whose weights take most of the time": (tokens: number, past: number) =>
    20 + 0.2 * tokens + 0.00002 * tokens * past,
  "a model that is slow on long prompts": (tokens: number, past: number) =>
    2 + 0.5 * tokens + 0.0004 * tokens * past,
};

const STREAMS: readonly CopyWish[] = [3, 5, 8, 13].map((first) => ({
  prompt: [first, 2, 3],
  maxTokens: 400,
}));
const LONG: CopyWish = {
  prompt: Array.from({ length: 4000 }, (_, i) => (i * i) % 53),
  maxTokens: 4,
  after: 60,
};

/** Quantiles of the gaps between the tokens of the streams, from the first token on. */
function gapsOf(times: readonly (readonly number[])[]) {
  const gaps = times
    .slice(0, STREAMS.length)
    .flatMap((own) => own.slice(1).map((time, i) => time - own[i]!))
    .sort((a, b) => a - b);
  const at = (share: number) => gaps[Math.min(gaps.length - 1, Math.floor(share * gaps.length))]!;
  return { p50: at(0.5), p99: at(0.99), most: gaps.at(-1)! };
}

describe.each(Object.entries(COSTS))("a prompt of 4,000 tokens beside four streams, on %s", (_, cost) => {
  const limits = { cost, contextLength: 4200 };

  it("leaves 99% of the gaps below twice the median", async () => {
    const measured = await copyTexts([...STREAMS, LONG], 0, { ...limits, prefillTokens: "measured" });
    const fixed = await copyTexts([...STREAMS, LONG], 0, { ...limits, prefillTokens: 256 });
    expect(measured.texts).toEqual(fixed.texts);
    const { p50, p99 } = gapsOf(measured.times);
    expect(p99 / p50).toBeLessThan(2);
    expect(gapsOf(fixed.times).p99).toBeGreaterThan(2 * p99);
    expect(measured.times[STREAMS.length]).toHaveLength(4);
  });
});

it("a prompt that is alone takes as few runs as ever", async () => {
  const alone = { ...LONG, after: 0 };
  const measured = await copyTexts([alone], 0, { contextLength: 4200, prefillTokens: "measured" });
  const fixed = await copyTexts([alone], 0, { contextLength: 4200, prefillTokens: 256 });
  expect(measured.runs).toBe(fixed.runs);
});
