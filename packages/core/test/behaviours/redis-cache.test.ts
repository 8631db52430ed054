import { batch, type ModelHandle, type ResponseCache, Triton } from "@tritonjs/core";
import { redisCache } from "@tritonjs/core/redis";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { RedisDouble } from "../../../../test/support/redis-double.js";

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
    const page = await tritons[0]!.service.metrics();
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
