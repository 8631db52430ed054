import { type CachedOutputs, type ResponseCache, Triton, type TritonOptions } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/core/testing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  type EchoHandle,
  EchoModel,
  echo,
  echoInputs,
  echoOutputs,
} from "../../../../test/support/echo-model.js";
import { outcomeOf, outcomesOf } from "../../../../test/support/outcome.js";
import { stage } from "../../../../test/support/pipeline.js";

/** A cache whose lookups end when the test says so. */
class SlowCache implements ResponseCache {
  readonly lookupTimeoutMs: number | undefined;
  readonly entries = new Map<string, CachedOutputs>();
  readonly lookups: ((fault?: unknown) => void)[] = [];
  closed = 0;

  constructor(lookupTimeoutMs?: number) {
    if (lookupTimeoutMs !== undefined) this.lookupTimeoutMs = lookupTimeoutMs;
  }

  get(key: string): Promise<CachedOutputs | undefined> {
    return new Promise((resolve, reject) => {
      this.lookups.push((fault) => (fault === undefined ? resolve(this.entries.get(key)) : reject(fault)));
    });
  }

  async set(key: string, outputs: CachedOutputs): Promise<void> {
    this.entries.set(key, outputs);
  }

  close(): void {
    this.closed++;
  }
}

const clock = new VirtualClock();
let triton: Triton;
let model: EchoModel;
beforeEach(() => {
  model = new EchoModel();
  vi.spyOn(process, "emitWarning").mockImplementation(() => {});
});
afterEach(async () => {
  await triton.close();
  vi.restoreAllMocks();
});

function bind(
  responseCache: TritonOptions["responseCache"],
  options: TritonOptions = {},
): Promise<EchoHandle> {
  triton = new Triton({ ...options, responseCache: responseCache! });
  return model.bind(triton, { responseCache: true });
}

/** Runs all work that is ready to run. */
const settle = () => clock.advance(0);

describe("an asynchronous response cache", () => {
  it("is asked once for equal requests; one of them runs, and all are answered", async () => {
    const cache = new SlowCache();
    const handle = await bind(cache, { clock });
    const sent = [echo(handle, 1), echo(handle, 1), echo(handle, 1)];
    await settle();
    expect(cache.lookups).toHaveLength(1);
    cache.lookups[0]!();
    await settle();
    expect(await Promise.all(sent)).toEqual([1, 1, 1]);
    expect(model.batches).toEqual([[1]]);
    const { cacheHit, cacheMiss, success } = handle.statistics().inferenceStats;
    expect([cacheHit.count, cacheMiss.count, success.count]).toEqual([2, 1, 3]);
  });

  it("answers from a hit without an execution", async () => {
    const cache = new SlowCache();
    const handle = await bind(cache, { clock });
    for (let round = 0; round < 2; round++) {
      const sent = [echo(handle, 1), echo(handle, 1)];
      await settle();
      cache.lookups.shift()!();
      await settle();
      expect(await Promise.all(sent)).toEqual([1, 1]);
    }
    expect(model.batches).toEqual([[1]]);
  });

  it("lets requests be cancelled during a lookup, and the others run", async () => {
    const cache = new SlowCache();
    const handle = await bind(cache, { clock });
    const given = new AbortController();
    const sent = outcomesOf([echo(handle, 1, { signal: given.signal }), echo(handle, 1)]);
    const late = outcomeOf(echo(handle, 2, { timeoutMs: 3 }));
    await settle();
    given.abort();
    await clock.advance(3);
    expect(await late).toMatch(/^UNAVAILABLE/);
    for (const lookup of cache.lookups.splice(0)) lookup();
    await settle();
    expect(await sent).toEqual(["CANCELLED the request was cancelled", "done"]);
    expect(model.batches).toEqual([[1]]);
  });

  it("is counted as failed when it exceeds its time limit or fails, and requests run", async () => {
    const cache = new SlowCache(10);
    const handle = await bind(cache, { clock });
    const slow = echo(handle, 1);
    await settle();
    await clock.advance(10);
    await settle();
    expect(await slow).toBe(1);
    // The lookup, and the probe that asks whether the cache answers again.
    for (const answer of cache.lookups.splice(0)) answer();
    await settle();
    const broken = echo(handle, 2);
    await settle();
    cache.lookups.shift()!(new Error("gone"));
    await settle();
    expect(await broken).toBe(2);
    expect(await triton.service.metrics()).toMatch(/^tritonjs_cache_failure_total\{[^}]*\} 2$/m);
  });

  it("is closed with its Triton", async () => {
    const cache = new SlowCache();
    await bind(cache, { clock });
    await triton.close();
    expect(cache.closed).toBe(1);
  });
});

describe("a response cache that throws", () => {
  it("fails no request, neither on lookup nor on insertion", async () => {
    const handle = await bind({
      get: () => {
        throw new Error("no lookup");
      },
      set: () => {
        throw new Error("no insertion");
      },
    });
    expect(await echo(handle, 1)).toBe(1);
    expect(await echo(handle, 1)).toBe(1);
    expect(model.batches).toEqual([[1], [1]]);
    expect(await triton.service.metrics()).toMatch(/^tritonjs_cache_failure_total\{[^}]*\} 4$/m);
    expect(process.emitWarning).toHaveBeenCalledOnce();
  });
});

describe("a response cache that cannot keep answers", () => {
  it.each([
    [
      "throws",
      () => {
        throw new Error("no insertion");
      },
    ],
    ["rejects", () => Promise.reject(new Error("no insertion"))],
  ])(
    "is named in the log in Triton's words, with the request, the key and the reason, if it %s",
    async (_, set) => {
      const lines: string[] = [];
      const logger = { error: (text: string) => void lines.push(text), warn() {}, info() {}, debug() {} };
      const handle = await bind({ get: () => undefined, set }, { logger });
      expect(await echo(handle, 1, { id: "first" })).toBe(1);
      await expect.poll(() => lines).toHaveLength(1);
      expect(lines[0]).toMatch(
        /^\[request id: first\] Failed to insert request_hash \[[^\]]+\] into response cache: no insertion$/,
      );
    },
  );
});

describe("the response cache in memory", () => {
  it("keeps answers to other shapes, outputs or parameters apart", async () => {
    const handle = await bind({ byteSize: 1 << 20 });
    await echo(handle, 1);
    await echo(handle, 1, { parameters: { mode: "b" } });
    await handle.infer({ x: [[1], [1]] });
    await echo(handle, 1);
    expect(model.batches).toEqual([[1], [1], [1, 1]]);
  });

  it("evicts the least recently used entry when it is full, and keeps no entry larger than itself", async () => {
    const handle = await bind({ byteSize: 3 * 260 });
    for (const value of [1, 2, 3, 1, 4, 1, 2]) await echo(handle, value);
    expect(model.batches).toEqual([[1], [2], [3], [4], [2]]);
  });

  it("reports its use on the metrics page, as Triton's local cache", async () => {
    const handle = await bind({ byteSize: 3 * 260 }, { clock });
    for (const value of [1, 2, 3, 1, 4, 1, 2]) await Promise.all([echo(handle, value), settle()]);
    const page = await triton.service.metrics();
    const gauges = page.split("\n").filter((line) => /^nv_cache_(?!.*_per_model)/.test(line));
    expect(gauges).toEqual([
      "nv_cache_util 1",
      "nv_cache_num_entries 3",
      "nv_cache_num_hits 2",
      "nv_cache_num_misses 5",
      "nv_cache_num_lookups 7",
      "nv_cache_num_evictions 2",
      "nv_cache_lookup_duration 0",
      "nv_cache_insertion_duration 0",
    ]);
  });

  it("has no metrics on a server without it", async () => {
    triton = new Triton();
    await model.bind(triton);
    expect(await triton.service.metrics()).not.toContain("nv_cache_");
  });

  it("shares the answer of an ensemble step with direct requests, whether or not they name outputs", async () => {
    const handle = await bind({ byteSize: 1 << 20 });
    const ensemble = triton.bindEnsemble({
      modelName: "outer",
      inputs: echoInputs,
      outputs: echoOutputs,
      steps: [stage("echo", "x", "y")],
      config: { maxBatchSize: 4 },
    });
    await ensemble.infer({ x: [[1]] });
    expect(await echo(handle, 1)).toBe(1);
    expect(model.batches).toEqual([[1]]);
  });
});
