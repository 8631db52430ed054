/*
 * The same service in the three designs of docs/from-express.md: the model in the route, the model behind a job queue
 * (BullMQ with Redis and one worker process), and the model bound. All get the same requests, 64 at a time. Needs
 * `redis-server`.
 */
import { tmpdir } from "node:os";
import { findRedis, RedisProcess } from "../chaos/servers/redis-process.mjs";
import { binaryBody, httpLoad, httpLoadTool } from "./support/load.mjs";
import { median, medianOf, PAIRS, SECONDS, short } from "./support/pairs.mjs";
import { probeHealth } from "./support/probe-health.mjs";
import { startProgram, treeCpuMicroseconds } from "./support/program.mjs";
import { report } from "./support/report.mjs";

const CONCURRENCY = 64;
/** A load leaves requests without a client behind. In a short run they would be a large part of the work. */
const seconds = Math.max(5, SECONDS);
const MODELS = { mlp: [1, 512], tiny: [1, 16] };

/** Starts the programs of each design: the first one has the URL. */
const designs = {
  "in the route": async (model) => [await startProgram("naive-server", { model })],
  "job queue": async (model, redis) => [
    await startProgram("job-queue-server", { model, redis }),
    await startProgram("job-queue-worker", { model, redis }),
  ],
  bound: async (model) => [await startProgram("onnx-server", { model })],
};

async function measure([server], request) {
  const url = await server.call("url");
  await server.call("delay");
  const health = probeHealth(`${url}/v2/health/live`);
  const cpu = treeCpuMicroseconds();
  const load = await httpLoad({ ...request, url: `${url}${request.path}` }, CONCURRENCY, seconds);
  const [healthMs, delayMs] = [await health.stop(), await server.call("delay")];
  // Answered after the requests that lost their clients at the end of the load.
  const last = await fetch(`${url}${request.path}`, { method: "POST", ...request });
  await last.arrayBuffer();
  const cpuMs = (treeCpuMicroseconds() - cpu) / 1000 / (load.rate * seconds + CONCURRENCY);
  return { ...load, healthMs, delayMs, cpuMs };
}

const program = findRedis();
if (program === undefined) throw new Error("there is no redis-server");

const rows = {};
for (const [model, shape] of Object.entries(MODELS)) {
  const redis = new RedisProcess(program, tmpdir());
  await redis.start();
  const request = binaryBody(model, shape);
  const started = {};
  for (const [name, start] of Object.entries(designs)) started[name] = await start(model, redis.url);
  const runs = Object.fromEntries(Object.keys(designs).map((name) => [name, []]));
  for (const programs of Object.values(started)) await measure(programs, request);
  for (let round = 0; round < PAIRS; round++) {
    for (const [name, programs] of Object.entries(started)) runs[name].push(await measure(programs, request));
  }
  for (const [name, measured] of Object.entries(runs)) {
    rows[`${model}, ${name}`] = {
      "requests/s": medianOf(measured, ({ rate }) => rate),
      "of the route": short(median(measured.map(({ rate }, i) => rate / runs["in the route"][i].rate))),
      "p50 ms": medianOf(measured, ({ p50Ms }) => p50Ms),
      "p99 ms": medianOf(measured, ({ p99Ms }) => p99Ms),
      "CPU ms a request": medianOf(measured, ({ cpuMs }) => cpuMs),
      "health p99 ms": medianOf(measured, ({ healthMs }) => healthMs),
      "loop delay p99 ms": medianOf(measured, ({ delayMs }) => delayMs),
    };
  }
  for (const program of Object.values(started).flat()) await program.stop();
  await redis.kill();
}

report("designs", {
  rows,
  document: "from-express.md",
  note:
    `${CONCURRENCY} requests at a time from ${httpLoadTool()}. Each design runs the model on one thread: the route, one ` +
    "worker process, one instance. CPU is that of all processes, Redis and the worker included. `mlp` has 13.6 million " +
    "weights, `tiny` costs no more than its request.",
});
