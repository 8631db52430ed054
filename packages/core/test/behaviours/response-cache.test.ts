import {
  batch,
  type CachedOutputs,
  type ModelHandle,
  type ResponseCache,
  Triton,
  type TritonOptions,
} from "@tritonjs/core";
import { redisCache } from "@tritonjs/operations/redis";
import { serviceOf } from "@tritonjs/server";
import { VirtualClock } from "@tritonjs/testing";
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
import { RedisDouble } from "../../../../test/support/redis-double.js";
import { cacheKey, GuardedCache } from "../../src/cache/response-cache.js";
import { InferenceRequest } from "../../src/request/inference-request.js";

describe("response cache", () => {
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
      expect(await serviceOf(triton).metrics()).toMatch(/^tritonjs_cache_failure_total\{[^}]*\} 2$/m);
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
      expect(await serviceOf(triton).metrics()).toMatch(/^tritonjs_cache_failure_total\{[^}]*\} 4$/m);
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
      const page = await serviceOf(triton).metrics();
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
      expect(await serviceOf(triton).metrics()).not.toContain("nv_cache_");
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
});

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

describe("redis cache", () => {
  const inputs = [
    { name: "x", dtype: "FP32", shape: [-1] },
    { name: "word", dtype: "BYTES", shape: [1] },
  ] as const;

  const outputs = [
    { name: "y", dtype: "FP64", shape: [-1] },
    { name: "shout", dtype: "BYTES", shape: [1] },
  ] as const;

  type Handle = ModelHandle<typeof inputs, typeof outputs>;
  const tritons: Triton[] = [];

  /** Stands for a separate server process to the cache, and counts its executions. */
  function server(responseCache: ResponseCache): Handle {
    const triton = new Triton({ responseCache });
    tritons.push(triton);
    return triton.bind({
      modelName: "m",
      inputs,
      outputs,
      inferFunc: batch(({ x, word }) => ({
        y: Float64Array.from(x.data, (value) => value / 2),
        shout: word.data.map((bytes) => [Buffer.from(bytes).toString().toUpperCase()]),
      })),
      config: { responseCache: true },
    });
  }

  async function ask(handle: Handle, value: number): Promise<unknown> {
    const { y, shout } = await handle.inferSample({ x: [value, -value], word: ["grüße"] });
    return [[...y.data], Buffer.from(shout.data[0]!).toString()];
  }

  const executions = (handle: Handle) => handle.statistics().executionCount;

  /** Waits until the connection is open, which a cache does not wait for. */
  async function untilCached(handle: Handle): Promise<void> {
    await expect
      .poll(async () => {
        const before = executions(handle);
        await ask(handle, 0);
        return executions(handle) === before;
      })
      .toBe(true);
  }

  beforeEach(() => {
    vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  });

  afterEach(async () => {
    await Promise.all(tritons.splice(0).map((triton) => triton.close()));
    vi.restoreAllMocks();
  });

  describe("the response cache in Redis", () => {
    const double = new RedisDouble();
    let url = "";
    beforeEach(async () => {
      double.fault = undefined;
      double.entries.clear();
      url = await double.start();
    });
    afterEach(() => double.stop());

    it("shares responses among all servers, byte for byte", async () => {
      const [one, two] = [server(redisCache({ url })), server(redisCache({ url }))];
      await untilCached(one);
      await untilCached(two);
      const [ranInOne, ranInTwo] = [executions(one), executions(two)];
      expect(await ask(one, 3)).toEqual([[1.5, -1.5], "GRÜSSE"]);
      // Stored after the answer: the other server sees it a moment later.
      await expect
        .poll(async () => {
          const before = executions(two);
          expect(await ask(two, 3)).toEqual([[1.5, -1.5], "GRÜSSE"]);
          return executions(two) === before;
        })
        .toBe(true);
      expect(executions(one)).toBe(ranInOne + 1);
      expect(executions(two)).toBeGreaterThanOrEqual(ranInTwo);
      expect(two.statistics().inferenceStats.cacheHit.count).toBeGreaterThan(0);
    });

    it("separates caches with different prefixes", async () => {
      const one = server(redisCache({ url, keyPrefix: "one:" }));
      await untilCached(one);
      const two = server(redisCache({ url, keyPrefix: "two:" }));
      const before = executions(two);
      await ask(two, 0);
      expect(executions(two)).toBe(before + 1);
    });

    it("lets entries expire", async () => {
      await untilCached(server(redisCache({ url, ttlSeconds: 1.5 })));
      expect([...double.entries.values()].map(({ expiresMs }) => expiresMs)).toEqual([1500]);
    });

    it("runs requests while Redis fails, counts the failures, and warns once", async () => {
      const handle = server(redisCache({ url }));
      await untilCached(handle);
      const warnings = vi.mocked(process.emitWarning).mock.calls.length;
      double.fault = "OOM command not allowed";
      const before = executions(handle);
      for (let i = 1; i <= 3; i++) expect(await ask(handle, i)).toEqual([[i / 2, -i / 2], "GRÜSSE"]);
      expect(executions(handle)).toBe(before + 3);
      const page = await serviceOf(tritons[0]!).metrics();
      const failures = Number(/^tritonjs_cache_failure_total\{.*\} (\d+)$/m.exec(page)?.[1]);
      expect(failures).toBeGreaterThanOrEqual(3);
      expect(vi.mocked(process.emitWarning).mock.calls.length - warnings).toBeLessThanOrEqual(1);
    });

    it("runs requests when Redis does not answer, and when it is missing", async () => {
      const handle = server(redisCache({ url, lookupTimeoutMs: 5 }));
      await untilCached(handle);
      double.fault = "silence";
      expect(await ask(handle, 7)).toEqual([[3.5, -3.5], "GRÜSSE"]);
      const alone = server(redisCache({ url: "redis://127.0.0.1:1" }));
      expect(await ask(alone, 7)).toEqual([[3.5, -3.5], "GRÜSSE"]);
    });

    it("treats an unreadable entry as a miss", async () => {
      const handle = server(redisCache({ url }));
      await untilCached(handle);
      for (const entry of double.entries.values()) entry.value = entry.value.subarray(0, -3);
      const before = executions(handle);
      await ask(handle, 0);
      expect(executions(handle)).toBe(before + 1);
    });

    it("works with a client of the user and leaves it open", async () => {
      const stored = new Map<string, Buffer>();
      const client = {
        withTypeMapping: () => ({
          get: async (key: string) => stored.get(key) ?? null,
          set: async (key: string, value: Buffer) => stored.set(key, value),
        }),
      };
      const handle = server(redisCache({ client }));
      await ask(handle, 1);
      const before = executions(handle);
      await ask(handle, 1);
      expect(executions(handle)).toBe(before);
      expect([...stored.keys()][0]).toMatch(/^tritonjs:/);
    });
  });
});
