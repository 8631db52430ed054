/*
 * How does a server perform beyond its capacity? It gets a Poisson load of 0.5 to 3 times its capacity, with an SLO.
 * Goodput is the rate of answers within the SLO. The naive server gets the same load. The model gains nothing from
 * batches, so both servers have about the same capacity.
 */
import { binaryBody, httpLoad } from "./support/load.mjs";
import { median, medianOf, PAIRS, ratioOf, SECONDS, short } from "./support/pairs.mjs";
import { drawLines } from "./support/plots.mjs";
import { startProgram } from "./support/program.mjs";
import { report } from "./support/report.mjs";

const LOADS = [0.5, 1, 1.5, 2, 3];
/** Loads at which the naive server is measured; it restarts for each. */
const NAIVE_LOADS = new Set([0.5, 1, 3]);
const RUN_SECONDS = 1.5 * SECONDS;
const SLO_MS = 250;
/** Longest wait in the queue, as a share of the SLO. */
const QUEUE_SHARE = 0.4;
const MAX_BATCH_SIZE = 8;
const CAPACITY_ROUNDS = 3;

const request = binaryBody("heavy", [1, 3, 32, 32]);
const body = request.body.toString("base64");
const urlOf = async (program) => `${await program.call("url")}${request.path}`;
const startOurs = (batcher) =>
  startProgram("onnx-server", { model: "heavy", maxBatchSize: MAX_BATCH_SIZE, batcher });
const client = await startProgram("poisson-client");

/** Answers a second without a limit, with three batches of requests in flight. */
async function measureCapacity() {
  const program = await startOurs();
  const load = async () =>
    (await httpLoad({ ...request, url: await urlOf(program) }, 3 * MAX_BATCH_SIZE, SECONDS)).rate;
  await load();
  const rates = [];
  while (rates.length < CAPACITY_ROUNDS) rates.push(await load());
  await program.stop();
  return median(rates);
}

const capacity = await measureCapacity();
const queueMs = SLO_MS * QUEUE_SHARE;
const maxQueueSize = Math.round((capacity * queueMs) / 1000);
/**
 * The server refuses requests beyond the queue's size at once, and requests that have waited too long when their time
 * is over.
 */
const ours = await startOurs({
  defaultQueuePolicy: {
    maxQueueSize,
    timeoutAction: "REJECT",
    defaultTimeoutMicroseconds: queueMs * 1000,
  },
});

const offer = async (program, load) =>
  client.call("run", {
    url: await urlOf(program),
    headers: request.headers,
    body,
    rate: capacity * load,
    seconds: RUN_SECONDS,
    sloMs: SLO_MS,
  });

/**
 * Loads a naive server. Each load gets a new one, because the old one still works on requests whose clients have left.
 */
async function offerToNaive(load) {
  const naive = await startProgram("naive-server", { model: "heavy" });
  await httpLoad({ ...request, url: await urlOf(naive) }, 1, SECONDS);
  const outcome = await offer(naive, load);
  await naive.stop();
  return outcome;
}

const runs = { ours: new Map(LOADS.map((load) => [load, []])), naive: new Map() };
for (const load of NAIVE_LOADS) runs.naive.set(load, []);
const memory = [];
// Warm-up: opens sockets and compiles code.
for (const load of LOADS) await offer(ours, load);
for (let round = 0; round < PAIRS; round++) {
  for (const load of LOADS) {
    runs.ours.get(load).push(await offer(ours, load));
    if (NAIVE_LOADS.has(load)) runs.naive.get(load).push(await offerToNaive(load));
  }
  memory.push(await ours.call("memory"));
}
await Promise.all([client, ours].map((program) => program.stop()));

const percent = (share) => `${Math.round(100 * share)}%`;
const rows = {};
const lines = { tritonjs: [], naive: [] };
for (const load of LOADS) {
  const [here, there] = [runs.ours.get(load), runs.naive.get(load)];
  const row = {
    "goodput here": medianOf(here, ({ goodput }) => goodput),
    "refused here": percent(medianOf(here, ({ refused, sent }) => refused / sent)),
    "p99 ms here": medianOf(here, ({ p99Ms }) => p99Ms),
    "refusal ms": medianOf(here, ({ refusedP50Ms }) => refusedP50Ms),
    "client busy": percent(medianOf(here, ({ clientBusy }) => clientBusy)),
    ...(there !== undefined && {
      "goodput there": medianOf(there, ({ goodput }) => goodput),
      "p99 ms there": medianOf(there, ({ p99Ms }) => p99Ms),
      "unanswered there": percent(medianOf(there, ({ unanswered, sent }) => unanswered / sent)),
    }),
  };
  rows[`${load} of capacity`] = row;
  lines.tritonjs.push([load, row["goodput here"]]);
  if (there !== undefined) lines.naive.push([load, row["goodput there"]]);
}
const kept = ratioOf({ ours: runs.ours.get(3), reference: runs.ours.get(1) }, ({ goodput }) => goodput);
const growth = (field) => short(memory.at(-1)[field] / memory[0][field]);

report("overload", {
  rows,
  figures: {
    capacity,
    maxQueueSize,
    sloMs: SLO_MS,
    goodputKept: kept,
    growth: { rss: growth("rss"), heapUsed: growth("heapUsed") },
  },
  plots: {
    "": [
      drawLines,
      `Answers within ${SLO_MS} ms, a second`,
      Object.entries(lines).map(([label, points]) => ({ label, points })),
      { xLabel: "offered load, of the capacity", yLabel: "goodput" },
    ],
  },
  note: ({ capacity, maxQueueSize, goodputKept, growth: { rss, heapUsed } }) =>
    `Capacity ${short(capacity)} a second, SLO ${SLO_MS} ms, at most ${Math.round(maxQueueSize)} queued, for at most ${queueMs} ms. Goodput ` +
    `at 3x load is ${goodputKept.ratio} of that at capacity (${goodputKept.least} to ${goodputKept.most}). After the last ` +
    `round, RSS is ${rss} of that after the first round, and the heap is ${heapUsed}. The p99 is that of answered ` +
    `requests. "unanswered" is the share of requests without an answer ${SLO_MS} ms after the load had ended.`,
});
