/*
 * What is left of a server when more is asked of it than it can do? Poisson load of 0.5 to 3 times what it answers at most,
 * with an SLO; goodput is what is answered within it. The naive server gets the same load.
 */
import { binaryBody } from "./support/load/http-bodies.mjs";
import { httpLoad } from "./support/load/http-load.mjs";
import { medianOf, PAIRS, ratioOf, SECONDS } from "./support/pairs.mjs";
import { drawLines } from "./support/plot/draw-lines.mjs";
import { probeHealth } from "./support/probe-health.mjs";
import { startProgram } from "./support/program.mjs";
import { report } from "./support/report.mjs";
import { median, short } from "./support/statistics.mjs";

const LOADS = [0.5, 1, 1.5, 2, 3];
const SLO_MS = 250;
const CAPACITY_ROUNDS = 3;
/** Of the SLO, the share that a request may wait in the queue. */
const QUEUE_SHARE = 0.4;

const request = binaryBody("heavy", [1, 512]);
const client = await startProgram("poisson-client");
const maxQueueSize = 256;
const batcher = {
  defaultQueuePolicy: {
    maxQueueSize,
    timeoutAction: "REJECT",
    defaultTimeoutMicroseconds: SLO_MS * QUEUE_SHARE * 1000,
  },
};
const ours = await startProgram("onnx-server", { model: "heavy", batcher });

const urlOf = async (program) => `${await program.call("url")}${request.path}`;
const url = await urlOf(ours);

const capacities = [];
await httpLoad({ ...request, url }, 64, SECONDS);
for (let round = 0; round < CAPACITY_ROUNDS; round++) {
  capacities.push((await httpLoad({ ...request, url }, 64, 2 * SECONDS)).rate);
}
const capacity = median(capacities);

const body = request.body.toString("base64");
const call = { headers: request.headers, body, seconds: 2 * SECONDS, sloMs: SLO_MS };

/** Load on our server, which must have settled before the next measurement. */
async function loadOurs(rate) {
  const outcome = await client.call("run", { ...call, url, rate });
  const probe = probeHealth(`${await ours.call("url")}/v2/health/live`);
  await new Promise((resolve) => setTimeout(resolve, 300));
  await probe.stop();
  return outcome;
}

/** Load on the naive server: a new one each time, because it goes on with what nobody waits for any more. */
async function loadNaive(rate) {
  const naive = await startProgram("naive-server", { model: "heavy" });
  const naiveUrl = await urlOf(naive);
  await httpLoad({ ...request, url: naiveUrl }, 1, SECONDS);
  const outcome = await client.call("run", { ...call, url: naiveUrl, rate });
  await naive.stop();
  return outcome;
}

const runs = { ours: new Map(), naive: new Map() };
const memory = [];
for (let round = 0; round < PAIRS; round++) {
  for (const load of LOADS) {
    for (const [name, measure] of Object.entries({ ours: loadOurs, naive: loadNaive })) {
      runs[name].set(load, [...(runs[name].get(load) ?? []), await measure(capacity * load)]);
    }
  }
  memory.push((await ours.call("memory")).rss);
}
await Promise.all([client, ours].map((program) => program.stop()));

const rows = {};
const lines = { tritonjs: [], naive: [] };
for (const load of LOADS) {
  const [here, there] = [runs.ours.get(load), runs.naive.get(load)];
  rows[`${load} of capacity`] = {
    "goodput here": medianOf(here, ({ goodput }) => goodput),
    "goodput there": medianOf(there, ({ goodput }) => goodput),
    "refused here": `${Math.round(medianOf(here, ({ refused, sent }) => (100 * refused) / sent))}%`,
    "p99 ms here": medianOf(here, ({ p99Ms }) => p99Ms),
    "p99 ms there": medianOf(there, ({ p99Ms }) => p99Ms),
    "client busy": `${Math.round(100 * medianOf(here, ({ clientBusy }) => clientBusy))}%`,
  };
  lines.tritonjs.push([load, rows[`${load} of capacity`]["goodput here"]]);
  lines.naive.push([load, rows[`${load} of capacity`]["goodput there"]]);
}
const kept = ratioOf({ ours: runs.ours.get(3), reference: runs.ours.get(1) }, ({ goodput }) => goodput);
const rss = short(memory.at(-1) / memory[0]);

report("overload", {
  rows,
  figures: { capacity, sloMs: SLO_MS, goodputKept: kept, rssLastToFirst: rss },
  plots: {
    "": drawLines(
      `Answers within ${SLO_MS} ms, a second`,
      Object.entries(lines).map(([label, points]) => ({ label, points })),
      { xLabel: "offered load, of the capacity", yLabel: "goodput" },
    ),
  },
  note:
    `Capacity ${short(capacity)} a second, SLO ${SLO_MS} ms, at most ${maxQueueSize} queued. Goodput at 3x load is ` +
    `${kept.ratio} of that at capacity (${kept.least} to ${kept.most}); RSS after the last round is ${rss} of that ` +
    `after the first.`,
});
