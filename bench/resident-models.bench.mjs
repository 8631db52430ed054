/*
 * 1,000 small ONNX models in 1 GB: how long requests take that find their model in memory, and those that load it,
 * compared with a model alone.
 */
import { medianOf, PAIRS, SECONDS, short } from "./support/pairs.mjs";
import { startProgram } from "./support/program.mjs";
import { report } from "./support/report.mjs";

const RATE = 100;
const [alone, many] = [
  await startProgram("resident-models", { models: 1 }),
  await startProgram("resident-models", { models: 1000, budgetMb: 800 }),
];
const startSeconds = (await many.call("startMs")) / 1000;
await many.call("touchAll");
const [ours, reference] = [[], []];
for (let pair = 0; pair < PAIRS; pair++) {
  ours.push(await many.call("load", { seconds: 5 * SECONDS, rate: RATE, skew: 1 }));
  reference.push(await alone.call("load", { seconds: 5 * SECONDS, rate: RATE }));
}
// Every request loads its model: they come in turn.
await many.call("use");
const misses = await many.call("touchAll");
const { cpuMs } = await many.call("use");
await Promise.all([alone.stop(), many.stop()]);

const row = (runs, of) => ({
  requests: runs.reduce((sum, run) => sum + (of(run).count ?? 0), 0),
  "p50 ms": medianOf(runs, (run) => of(run).p50 ?? Number.NaN),
  "p99 ms": medianOf(runs, (run) => of(run).p99 ?? Number.NaN),
});
report("resident-models", {
  rows: {
    "a model alone": row(reference, ({ hits }) => hits),
    "1,000 models, in memory": row(ours, ({ hits }) => hits),
    "1,000 models, on disk": row(ours, (run) => run.misses),
    "1,000 models in turn, on disk": row([misses], (run) => run.misses),
  },
  figures: {
    startSeconds: short(startSeconds),
    peakMb: short(Math.max(...ours.map(({ peakMb }) => peakMb), misses.peakMb)),
    failed: misses.failed,
    missCpuMs: short(cpuMs / misses.misses.count),
  },
  note: ({ startSeconds: start, peakMb, failed, missCpuMs }) =>
    `${RATE} requests a second. The server starts in ${start} s and takes ${peakMb} MB at most. A load takes ${missCpuMs} ms of ` +
    `processor time. ${failed} requests failed.`,
});
