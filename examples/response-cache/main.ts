import { sample, Triton } from "@tritonjs/core";
import { redisCache } from "@tritonjs/operations/redis";

/*
 * Equal requests are computed once. The cache is in memory, or in Redis, where all processes share it:
 *
 *   npm start
 *   REDIS_URL=redis://localhost:6379 npm start
 */

const url = process.env.REDIS_URL;
await using triton = new Triton({
  responseCache: url === undefined ? { byteSize: 64 * 1024 * 1024 } : redisCache({ url, ttlSeconds: 3600 }),
});

const embed = triton.bind({
  modelName: "embed",
  inputs: [{ name: "text", dtype: "BYTES", shape: [1] }],
  outputs: [{ name: "embedding", dtype: "FP32", shape: [4] }],
  inferFunc: sample(async ({ text }) => {
    const [word] = text.data;
    console.log(`computing "${Buffer.from(word!)}"`);
    return { embedding: Float32Array.from({ length: 4 }, (_, i) => word![i % word!.length]! / 255) };
  }),
  config: { batching: false, responseCache: true },
});

// The first two arrive together: one is computed, the other waits for its answer. The third is a cache hit.
await Promise.all([embed.infer({ text: ["hello"] }), embed.infer({ text: ["hello"] })]);
await embed.infer({ text: ["hello"] });
await embed.infer({ text: ["world"] });

const { cacheHit, cacheMiss } = embed.statistics().inferenceStats;
console.log(`hits ${cacheHit.count}, misses ${cacheMiss.count}`);
