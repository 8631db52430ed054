/*
 * How many good answers remain when many clients are refused and retry at once? Compares 256 clients in a closed loop
 * with 32 clients, at a queue of 32.
 */
import { binaryBody } from "./support/load.mjs";
import { medianOf, ratioOf, runPairs, SECONDS } from "./support/pairs.mjs";
import { probeHealth } from "./support/probe-health.mjs";
import { startProgram } from "./support/program.mjs";
import { report } from "./support/report.mjs";

const FEW = 32;
const MANY = 256;
const RUN_SECONDS = 2 * SECONDS;

const server = await startProgram("bounded-queue", { maxBatchSize: 8, maxQueueSize: FEW });
const client = await startProgram("http-client");
const url = await server.call("url");
const { path, headers, body } = binaryBody("slow", [1, 16]);

const load = (connections) => async () => {
  const health = probeHealth(`${url}/v2/health/live`);
  const call = { url: `${url}${path}`, headers, body: body.toString("base64") };
  const answers = await client.call("run", { ...call, connections, seconds: RUN_SECONDS });
  const { rate, errorRate: refused } = answers;
  return { rate: rate - refused, refused, healthMs: await health.stop() };
};
const runs = await runPairs(load(MANY), load(FEW));
await Promise.all([client, server].map((program) => program.stop()));

const row = (of) => ({
  "good answers": medianOf(of, ({ rate }) => rate),
  refusals: medianOf(of, ({ refused }) => refused),
  "health p99 ms": medianOf(of, ({ healthMs }) => healthMs),
});
report("refusals", {
  rows: { [`${FEW} clients`]: row(runs.reference), [`${MANY} clients`]: row(runs.ours) },
  figures: { kept: ratioOf(runs) },
  note: `Good answers of ${MANY} clients are ${ratioOf(runs).ratio} of those of ${FEW}, to a queue of ${FEW}.`,
});
