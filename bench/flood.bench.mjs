/*
 * How many good answers remain when thousands of callers are refused and retry at once? 4,000 callers in a closed loop
 * offer some ten times the capacity, in each way that requests come: unary gRPC, one stream for each request, streams
 * that stay open with one unanswered request each, 40 streams with 100 each, and `generate_stream` over HTTP. Health is
 * probed from a third process. BENCH_SECONDS=9 measures each way for three minutes.
 */
import { SECONDS, short } from "./support/pairs.mjs";
import { startProgram } from "./support/program.mjs";
import { report } from "./support/report.mjs";

const CALLERS = 4000;
const RUN_SECONDS = 20 * SECONDS;
const WARM_UP_SECONDS = 5;
const MOST_QUEUED = 40;
const CAPACITY_SECONDS = 4;

const ways = {
  ModelInfer: "unary",
  "ModelStreamInfer, a stream for each request": "calls",
  "ModelStreamInfer, 4,000 streams": "streams",
  "ModelStreamInfer, 40 streams": "shared",
  generate_stream: "generate",
};

async function measure(way) {
  const programs = await Promise.all([
    startProgram("overload-server", {
      batcher: { defaultQueuePolicy: { maxQueueSize: MOST_QUEUED, timeoutAction: "REJECT" } },
    }),
    startProgram("flood-client"),
    startProgram("health-prober"),
  ]);
  const [server, client, prober] = programs;
  const { http, grpc } = await server.call("urls");
  const urls = { http: numeric(http), grpc: numeric(grpc) };
  const capacity = await server.call("capacity", CAPACITY_SECONDS);
  await prober.call("start", urls);
  const load = { way, urls, callers: CALLERS, seconds: RUN_SECONDS, warmUpSeconds: WARM_UP_SECONDS };
  const running = client.call("run", load);
  await new Promise((resolve) => setTimeout(resolve, WARM_UP_SECONDS * 1000));
  await Promise.all([prober.call("figures"), server.call("use")]);
  const outcome = await running;
  const [health, { cpuMs }] = await Promise.all([prober.call("figures"), server.call("use")]);
  // The load of other work on the machine changes: the capacity is that before and after the calls.
  const later = await server.call("capacity", CAPACITY_SECONDS);
  await Promise.all(programs.map((program) => program.stop()));
  if (outcome.failures > 0) throw new Error(`${outcome.failures} calls failed: ${outcome.firstFailure}`);
  return { capacity: (capacity + later) / 2, outcome, health, serverCpu: cpuMs / 1000 / RUN_SECONDS };
}

/** Thousands of connections would each look the name up. */
const numeric = (url) => url.replace("localhost", "127.0.0.1");

const rows = {};
for (const [name, way] of Object.entries(ways)) {
  const { capacity, outcome, health, serverCpu } = await measure(way);
  const { goodput, refusals, p50Ms, p99Ms, refusalP50Ms, clientCpu } = outcome;
  rows[name] = {
    "capacity a second": short(capacity),
    "goodput / capacity": short(goodput / capacity),
    "refusals a second": short(refusals),
    "p50 ms of answers": p50Ms,
    "p99 ms of answers": p99Ms,
    "p50 ms of refusals": refusalP50Ms,
    "p99 ms of health, HTTP": health.http.p99Ms,
    "p99 ms of health, gRPC": health.grpc.p99Ms,
    "cores of the server": short(serverCpu),
    "cores of the client": clientCpu,
  };
  console.log(name, rows[name]);
}

report("flood", {
  rows,
  figures: { callers: CALLERS, seconds: RUN_SECONDS },
  note:
    `${CALLERS} callers that retry at once, for ${RUN_SECONDS} s each. The model waits 20 ms for each batch of 8, and at ` +
    `most ${MOST_QUEUED} requests are queued.`,
});
