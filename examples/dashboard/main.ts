import { setTimeout } from "node:timers/promises";
import { batch, Triton } from "@tritonjs/core";

/*
 * Two models under a steady load, to watch on the dashboard.
 *
 *   npm start
 *   npm start -- --once
 */

const once = process.argv.includes("--once");
await using triton = new Triton({
  dashboard: true,
  httpPort: 0,
  allowGrpc: false,
  metricsPort: once ? 0 : 8002,
});
for (const [modelName, factor] of [
  ["double", 2],
  ["triple", 3],
] as const)
  triton.bind({
    modelName,
    inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
    inferFunc: batch(async ({ x }) => {
      await setTimeout(10 * factor);
      return { y: x.data.map((value) => factor * value) };
    }),
    config: { maxBatchSize: 8 },
  });

const { addresses } = await triton.serve();
const page = `${addresses.metrics!.url}/dashboard/`;
console.log(`the dashboard is at ${page}`);

/** Sends 16 requests to each model, some of them wrong. */
async function load(): Promise<number> {
  const requests = ["double", "triple", "none"].flatMap((model) =>
    Array.from({ length: 16 }, (_, i) => triton.infer(model, { x: [[i]] })),
  );
  const outcomes = await Promise.allSettled(requests);
  return outcomes.filter(({ status }) => status === "fulfilled").length;
}

if (once) {
  console.log(`${await load()} answers`);
  const answer = await fetch(page);
  console.log(`${answer.status} ${answer.headers.get("content-type")}`);
} else {
  const stopped = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => stopped.abort());
  while (!stopped.signal.aborted) {
    await load();
    await setTimeout(200);
  }
}
