/*
 * What do frontend threads cost and take off the main thread? CPU time of each request by thread, with 64 requests at a
 * time, against the same server without threads. Then the delay of health probes while a model computes on the event
 * loop. `BENCH_THREADS` lists the numbers of threads.
 */

import { binaryBody, grpcLoad, httpLoad, inferMessage } from "./support/load.mjs";
import { medianOf, PAIRS, ratioOf, SECONDS, short } from "./support/pairs.mjs";
import { probeHealth } from "./support/probe-health.mjs";
import { startProgram } from "./support/program.mjs";
import { report } from "./support/report.mjs";

const THREADS = (process.env.BENCH_THREADS ?? "1,2").split(",").map(Number);
const seconds = Math.max(1, Math.round(SECONDS));

const small = binaryBody("small", [1, 16]);
const large = binaryBody("large", [150_000]);
const [smallMessage, largeMessage] = [
  await inferMessage("small", 64, true),
  await inferMessage("large", 600_000, false),
];
const http =
  ({ path, headers, body }) =>
  (urls, duration) =>
    httpLoad({ url: `${urls.http}${path}`, headers, body }, 64, duration);
const grpc = (message, load) => (urls, duration) =>
  grpcLoad(
    { url: urls.grpc.replace("localhost", "127.0.0.1"), method: "ModelInfer", messages: [message] },
    load,
    duration,
  );
const cases = {
  "HTTP, 64 B": http(small),
  "gRPC, 64 B": grpc(smallMessage, { connections: 4, streams: 16 }),
  "HTTP, 600 KB": http(large),
  "gRPC, 600 KB": grpc(largeMessage, { connections: 8, streams: 2 }),
};

/** Seconds of load before the first measurement. A thread compiles its code itself, which takes a few seconds. */
const WARM_UP_SECONDS = 4 * SECONDS;

const named = (threads) => (threads === 1 ? "1 thread" : `${threads} threads`);

/** Starts a server, and returns a function that loads it and tells the CPU time of each request. */
async function loaded(threads, load) {
  const server = await startProgram("threaded-server", { threads });
  const urls = await server.call("urls");
  await load(urls, WARM_UP_SECONDS);
  const run = async () => {
    const before = await server.call("cpu");
    const { rate } = await load(urls, seconds);
    const after = await server.call("cpu");
    const requests = rate * seconds;
    const engine = (after.engine - before.engine) / requests;
    const switches = (after.switches - before.switches) / requests;
    return { rate, engine, switches, total: engine + (after.others - before.others) / requests };
  };
  return { run, stop: () => server.stop() };
}

const rows = {};
for (const [name, load] of Object.entries(cases)) {
  const servers = [];
  for (const threads of [0, ...THREADS]) servers.push(await loaded(threads, load));
  const runs = servers.map(() => []);
  for (let round = 0; round < PAIRS; round++) {
    for (const [i, server] of servers.entries()) runs[i].push(await server.run());
  }
  for (const [i, threads] of THREADS.entries()) {
    const pairs = { ours: runs[i + 1], reference: runs[0] };
    const { ratio, least, most } = ratioOf(pairs);
    rows[`${name}, ${named(threads)}`] = {
      "engine µs": medianOf(pairs.ours, ({ engine }) => engine),
      "all threads µs": medianOf(pairs.ours, ({ total }) => total),
      "µs without threads": medianOf(pairs.reference, ({ total }) => total),
      "CPU, ratio": ratioOf(pairs, ({ total }) => total).ratio,
      "rate, ratio": ratio,
      least,
      most,
      "waits of threads": medianOf(pairs.ours, ({ switches }) => switches),
    };
  }
  await Promise.all(servers.map((server) => server.stop()));
}

/**
 * 99th percentile of health probes, in milliseconds, while a callback computes for 0.2 ms for each request. A process
 * that does nothing else is probed at the same time: its delay is that of the machine.
 */
async function healthUnderLoad(threads) {
  const server = await startProgram("threaded-server", { threads, computeMs: 0.2 });
  const idle = await startProgram("bare-http");
  const urls = await server.call("urls");
  const load = http(small);
  await load(urls, WARM_UP_SECONDS);
  const probe = probeHealth(`${urls.http}/v2/health/ready`);
  const idleProbe = probeHealth(await idle.call("url"));
  await load(urls, 2 * seconds);
  const [p99, idleP99] = [await probe.stop(), await idleProbe.stop()];
  await Promise.all([server.stop(), idle.stop()]);
  return { "p99 ms": short(p99), "p99 ms of an idle process": short(idleP99) };
}

for (const threads of [0, ...THREADS]) {
  rows[`health while a callback computes, ${threads === 0 ? "no threads" : named(threads)}`] =
    await healthUnderLoad(threads);
}

report("frontend-threads", {
  rows,
  document: "frontend-threads.md",
  note: "Load from 64 requests at a time. The rates are those of pairs of runs. The idle process does nothing else on the same machine.",
});
