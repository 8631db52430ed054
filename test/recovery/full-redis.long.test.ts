import { execFileSync } from "node:child_process";
import { batch, Triton } from "@tritonjs/core";
import { redisCache } from "@tritonjs/operations/redis";
import { serviceOf } from "@tritonjs/server";
import { expect, it, onTestFinished } from "vitest";
import { programOf } from "../deploy/front-proxy.js";
import { RedisServer } from "../deploy/redis-server.js";

const client = programOf("redis-cli");
const isMissing = client === undefined || programOf("redis-server") === undefined;

it.skipIf(isMissing)(
  `a full Redis fails no request, and caches again when it has space${isMissing ? " (skipped: redis-server or redis-cli is missing)" : ""}`,
  async () => {
    await using redis = await RedisServer.start();
    const setMemory = (bytes: number) =>
      execFileSync(client!, ["-u", redis.url, "config", "set", "maxmemory", String(bytes)]);
    const triton = new Triton({ responseCache: redisCache({ url: redis.url }) });
    onTestFinished(() => triton.close());
    const model = triton.bind({
      modelName: "m",
      inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
      inferFunc: batch(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
      config: { responseCache: true },
    });
    let asked = 0;
    const ask = async (value: number) => {
      asked++;
      expect([...(await model.inferSample({ x: [value] })).y.data]).toEqual([2 * value]);
    };
    const hits = () => model.statistics().inferenceStats.cacheHit.count;
    const untilHit = async (value: number) => {
      const before = hits();
      await expect
        .poll(async () => {
          await ask(value);
          return hits();
        })
        .toBeGreaterThan(before);
    };
    await untilHit(1);
    setMemory(1);
    const before = model.statistics().executionCount;
    for (const value of [2, 3, 2, 3]) await ask(value);
    expect(model.statistics().executionCount).toBe(before + 4);
    const failures = /^tritonjs_cache_failure_total\{.*\} (\d+)$/m;
    await expect
      .poll(async () => Number(failures.exec(await serviceOf(triton).metrics())?.[1]))
      .toBeGreaterThan(0);
    setMemory(0);
    await untilHit(2);
    expect(model.statistics().inferenceStats.success.count).toBe(asked);
  },
);
