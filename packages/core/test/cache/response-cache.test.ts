import { describe, expect, it } from "vitest";
import { type CachedOutputs, cacheKey, GuardedCache } from "../../src/cache/response-cache.js";
import { InferenceRequest } from "../../src/request/inference-request.js";
import { VirtualClock } from "../../src/system/clock.js";

/** Key of a request for a model with the outputs `y` and `z`. */
function keyFor(requestedOutputs: readonly string[]): string {
  const request = new InferenceRequest("m", { inputs: new Map(), requestedOutputs });
  return cacheKey("m", "1", request, ["y", "z"]);
}

describe("a response cache key", () => {
  it("is the same for all outputs, named or not", () => {
    expect(new Set([[], ["y", "z"], ["z", "y"], ["y", "z", "y"]].map(keyFor)).size).toBe(1);
  });

  it("distinguishes a subset of the outputs from other subsets and from all", () => {
    expect(new Set([[], ["y"], ["z"]].map(keyFor)).size).toBe(3);
    expect(keyFor(["y", "y"])).toBe(keyFor(["y"]));
  });
});

describe("a cache that hangs", () => {
  /** A cache whose lookups are answered by hand. */
  function hanging() {
    const clock = new VirtualClock();
    const lookups: { readonly key: string; answer(outputs?: CachedOutputs): void; fail(): void }[] = [];
    const cache = new GuardedCache(
      {
        lookupTimeoutMs: 100,
        get: (key) =>
          new Promise((resolve, reject) => {
            lookups.push({ key, answer: resolve, fail: () => reject(new Error("closed")) });
          }),
        set: () => {},
      },
      clock,
    );
    return { clock, lookups, cache };
  }
  const keys = (lookups: readonly { readonly key: string }[]) => lookups.map(({ key }) => key);

  it("is not asked by requests until it has answered a probe", async () => {
    const { clock, lookups, cache } = hanging();
    void cache.get("a");
    cache.timedOut();
    expect([cache.isSuspended, cache.get("b"), cache.get("c"), cache.skipped]).toEqual([
      true,
      undefined,
      undefined,
      2,
    ]);
    expect(keys(lookups)).toEqual(["a", "probe"]);
    lookups[1]!.answer();
    await clock.settle();
    expect(cache.isSuspended).toBe(false);
    void cache.get("d");
    await clock.advance(60_000);
    expect(keys(lookups)).toEqual(["a", "probe", "d"]);
  });

  it("is probed after one second, and then after twice as long each time up to 30 seconds", async () => {
    const { clock, lookups, cache } = hanging();
    cache.timedOut();
    cache.timedOut();
    const counts: number[] = [];
    for (const ms of [999, 1, 2000, 4000, 8000, 16_000, 30_000, 30_000]) {
      await clock.advance(ms);
      counts.push(lookups.length);
    }
    expect(counts).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    await cache.close();
    await clock.advance(60_000);
    expect(lookups.length).toBe(8);
  });

  it("is asked again when it fails at once, which keeps no request waiting", async () => {
    const { clock, lookups, cache } = hanging();
    cache.timedOut();
    lookups[0]!.fail();
    await clock.settle();
    expect(cache.isSuspended).toBe(false);
  });
});
