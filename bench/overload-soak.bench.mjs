/*
 * Does a server stay well beyond its capacity? It gets three times its capacity over HTTP, over gRPC and over streams of
 * gRPC, one after the other, for BENCH_SECONDS each (600 for a soak). The table goes into docs/security.md.
 */
import { SECONDS, short } from "./support/pairs.mjs";
import { probeHealth } from "./support/probe-health.mjs";
import { startProgram } from "./support/program.mjs";
import { report } from "./support/report.mjs";

const SLO_MS = 250;
/** Longest wait in the queue, as a share of the SLO. */
const QUEUE_MS = 0.4 * SLO_MS;
const OVERLOAD = 3;
const WARM_UP_SECONDS = Math.min(10, SECONDS);

const server = await startProgram("overload-server", {
  batcher: {
    defaultQueuePolicy: {
      maxQueueSize: 40,
      timeoutAction: "REJECT",
      defaultTimeoutMicroseconds: QUEUE_MS * 1000,
    },
  },
});
const client = await startProgram("overload-client");
const urls = await server.call("urls");
const capacity = await server.call("capacity", Math.min(5, SECONDS));

const rows = {};
for (const way of ["http", "grpc", "streams"]) {
  const load = (rate, seconds) => client.call("run", { way, urls, rate, seconds, sloMs: SLO_MS });
  await load(OVERLOAD * capacity, WARM_UP_SECONDS);
  const calm = await server.call("memory");
  const probe = probeHealth(`${urls.http}/v2/health/ready`);
  const outcome = await load(OVERLOAD * capacity, SECONDS);
  const healthP99Ms = await probe.stop();
  const after = await server.call("memory");
  rows[way] = {
    sent: outcome.sent,
    "goodput / capacity": short(outcome.goodput / capacity),
    "p99 ms of answers": short(outcome.p99Ms),
    refused: `${Math.round((100 * outcome.refused) / outcome.sent)}%`,
    late: outcome.late,
    failed: outcome.failed,
    "p99 ms of health": short(healthP99Ms),
    "RSS after / before": short(after.rss / calm.rss),
    "heap after / before": short(after.heapUsed / calm.heapUsed),
  };
}
await Promise.all([server, client].map((program) => program.stop()));

report("overload-soak", {
  rows,
  figures: { capacity, overload: OVERLOAD, sloMs: SLO_MS, seconds: SECONDS },
  document: "security.md",
  note:
    `${OVERLOAD} times the capacity of ${short(capacity)} a second for ${SECONDS} s each, answers wanted within ${SLO_MS} ms, ` +
    `at most 40 requests queued, for at most ${QUEUE_MS} ms.`,
});
