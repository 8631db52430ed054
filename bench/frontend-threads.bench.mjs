/*
 * What do frontend threads cost and take off the main thread? CPU time of each request by thread, with 64 requests at a
 * time, against the same server without threads. Then the delay of health probes while a model computes on the event
 * loop. `BENCH_THREADS` is the number of threads; 1 unless given.
 */

import { grpcLoad } from "./support/load/grpc-load.mjs";
import { inferMessage } from "./support/load/grpc-messages.mjs";
import { binaryBody } from "./support/load/http-bodies.mjs";
import { httpLoad } from "./support/load/http-load.mjs";
import { runPairs, SECONDS } from "./support/pairs.mjs";
import { probeHealth } from "./support/probe-health.mjs";
import { startProgram } from "./support/program.mjs";
import { saveResult } from "./support/save-result.mjs";
import { median, short } from "./support/statistics.mjs";

const THREADS = Number(process.env.BENCH_THREADS ?? 1);
const seconds = Math.max(1, Math.round(SECONDS));

const small = binaryBody("small", [1, 16]);
const large = binaryBody("large", [150_000]);
const [smallMessage, largeMessage] = [
  await inferMessage("small", 64, true),
  await inferMessage("large", 600_000, false),
];
const http =
  ({ path, headers, body }) =>
  (urls) =>
    httpLoad({ url: `${urls.http}${path}`, headers, body }, 64, seconds);
const grpc = (message, load) => (urls) =>
  grpcLoad(
    { url: urls.grpc.replace("localhost", "127.0.0.1"), method: "ModelInfer", messages: [message] },
    load,
    seconds,
  );
const cases = {
  "HTTP, 64 B": http(small),
  "gRPC, 64 B": grpc(smallMessage, { connections: 4, streams: 16 }),
  "HTTP, 600 KB": http(large),
  "gRPC, 600 KB": grpc(largeMessage, { connections: 8, streams: 2 }),
};

/** Starts a server, and returns a function that loads it and tells the CPU time of each request. */
async function loaded(threads, load) {
  const server = await startProgram("threaded-server", { threads });
  const urls = await server.call("urls");
  const run = async () => {
    const before = await server.call("cpu");
    const { rate } = await load(urls);
    const after = await server.call("cpu");
    const requests = rate * seconds;
    const engine = (after.engine - before.engine) / requests;
    return { rate, engine, total: engine + (after.others - before.others) / requests };
  };
  return { run, stop: () => server.stop() };
}

const rows = {};
for (const [name, load] of Object.entries(cases)) {
  const [with_, without] = [await loaded(THREADS, load), await loaded(0, load)];
  const { ours, reference } = await runPairs(with_.run, without.run);
  const of = (runs, figure) => short(median(runs.map((run) => run[figure])));
  const ratio = (figure) => short(median(ours.map((run, i) => run[figure] / reference[i][figure])));
  rows[name] = {
    "engine µs": of(ours, "engine"),
    "engine µs without threads": of(reference, "engine"),
    "all threads µs": of(ours, "total"),
    "all CPU, ratio": ratio("total"),
    "rate, ratio": ratio("rate"),
  };
  await Promise.all([with_.stop(), without.stop()]);
}

/** 99th percentile of health probes, in milliseconds, while a callback computes for 0.2 ms for each request. */
async function healthUnderLoad(threads) {
  const server = await startProgram("threaded-server", { threads, computeMs: 0.2 });
  const urls = await server.call("urls");
  const probe = probeHealth(`${urls.http}/v2/health/ready`);
  await http(small)(urls);
  const p99 = await probe.stop();
  await server.stop();
  return short(p99);
}

const health = {
  "p99 ms": await healthUnderLoad(THREADS),
  "p99 ms without threads": await healthUnderLoad(0),
};
console.table(rows);
console.log(`health probes while a model computes: ${JSON.stringify(health)}`);
saveResult("frontend-threads", { threads: THREADS, rows, health });
