import { describe, expect, it } from "vitest";
import type { KvLayout, KvSlice } from "../../src/decoder/forward-pass.js";
import { PrefixCache } from "../../src/decoder/forward-pass.js";
import { StoryTeller } from "../support/story-teller.js";

const layout: KvLayout = { layers: [], datatype: "FP32" };
const tokens = (first: number, length: number) => Array.from({ length }, (_, i) => first * 1000 + i);
const past = (length: number): KvSlice => ({
  block: { tensors: [], rows: 1, width: length },
  row: 0,
  start: 0,
  length,
});

function cacheOf(maxTokens: number, ...prompts: readonly (readonly number[])[]): PrefixCache {
  const cache = new PrefixCache(layout, maxTokens);
  for (const prompt of prompts) cache.add(prompt, past(prompt.length));
  return cache;
}

describe("the cache of prefixes", () => {
  it("finds the longest common beginning, without the last token of the prompt", () => {
    const cache = cacheOf(100, tokens(1, 20));
    expect(cache.find([...tokens(1, 12), 5, 6])?.length).toBe(12);
    expect(cache.find(tokens(1, 20))?.length).toBe(19);
    expect(cache.find(tokens(2, 20))).toBeUndefined();
    expect(cache.find([...tokens(1, 4), 5, 6])).toBeUndefined();
    expect(cache.hits).toBe(2);
  });

  it("keeps the longer of two prompts that begin alike", () => {
    const cache = cacheOf(100, tokens(1, 10), tokens(1, 20), tokens(1, 15));
    expect(cache.tokens).toBe(20);
    expect(cache.find(tokens(1, 30))?.length).toBe(20);
  });

  it("keeps a prompt only if it has more than a hundredth that no other has", () => {
    const cache = cacheOf(1000, tokens(1, 396), tokens(1, 399));
    expect(cache.tokens).toBe(396);
    cache.add(tokens(1, 400), past(400));
    expect(cache.tokens).toBe(396);
    cache.add(tokens(1, 401), past(401));
    expect(cache.tokens).toBe(401);
  });

  it("drops the least recently used one first, when space is needed", () => {
    const cache = cacheOf(30, tokens(1, 10), tokens(2, 10), tokens(3, 10));
    cache.find(tokens(1, 12));
    cache.add(tokens(4, 10), past(10));
    expect(cache.find(tokens(2, 12))).toBeUndefined();
    expect(cache.find(tokens(1, 12))?.length).toBe(10);
    cache.shrinkTo(15);
    expect(cache.tokens).toBe(10);
    expect(cache.find(tokens(1, 12))?.length).toBe(10);
    cache.add(tokens(5, 31), past(31));
    expect(cache.tokens).toBe(10);
  });
});

it("the option prefixCacheBytes bounds what is kept after many different prompts", async () => {
  const tokenBytes = 512;
  const teller = new StoryTeller({ prefixCacheBytes: 60 * tokenBytes });
  try {
    for (const name of ["Tom", "Mia", "Ben", "Max", "Zoe", "Sam", "Kim"])
      await teller.text({
        prompt: `${name} was a big dog and lived in the house.`,
        sampling: { max_tokens: 3 },
      });
    const capacity = await teller.metric("tritonjs_generation_token_capacity");
    const kept = async () =>
      Math.round(capacity * (await teller.metric("tritonjs_generation_kv_cache_usage")));
    await expect.poll(() => teller.metric("tritonjs_generation_running")).toBe(0);
    await expect.poll(kept).toBeLessThanOrEqual(60);
    expect(await kept()).toBeGreaterThan(20);
  } finally {
    await teller.close();
  }
});
