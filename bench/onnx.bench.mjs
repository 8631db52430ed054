/*
 * How close does a batched ONNX model come to what the model can do at all, and how far is that from the server that one
 * writes first? With it: how long others wait meanwhile.
 */
import { binaryBody } from "./support/load/http-bodies.mjs";
import { httpLoad, httpLoadTool } from "./support/load/http-load.mjs";
import { medianOf, ratioOf, runPairs, SECONDS } from "./support/pairs.mjs";
import { drawLines } from "./support/plot/draw-lines.mjs";
import { probeHealth } from "./support/probe-health.mjs";
import { startProgram } from "./support/program.mjs";
import { report } from "./support/report.mjs";

const CONCURRENCIES = [1, 4, 16, 64, 256];
/** At other concurrencies fewer pairs do. */
const JUDGED = 64;
const shapes = { mlp: [1, 512], conv: [1, 3, 32, 32] };

const rows = {};
const plots = {};
for (const model of ["mlp", "conv"]) {
  const [ours, naive, limit] = await Promise.all(
    ["onnx-server", "naive-server", "onnx-limit"].map((name) => startProgram(name, { model })),
  );
  const request = binaryBody(model, shapes[model]);
  const overHttp = (program, concurrency) => async () => {
    const url = await program.call("url");
    await program.call("delay");
    const health = probeHealth(`${url}/v2/health/live`);
    const { rate } = await httpLoad({ ...request, url: `${url}${request.path}` }, concurrency, SECONDS);
    return { rate, healthMs: await health.stop(), delayMs: await program.call("delay") };
  };
  const inProcess = (concurrency) => () => ours.call("run", concurrency, SECONDS);
  const atLimit = () => limit.call("run", SECONDS);
  const lines = { "in process": [], HTTP: [] };
  for (const concurrency of CONCURRENCIES) {
    const options = concurrency === JUDGED ? {} : { pairs: 2 };
    const sides = { "in process": inProcess(concurrency), HTTP: overHttp(ours, concurrency) };
    for (const [way, side] of Object.entries(sides)) {
      const runs = await runPairs(side, atLimit, options);
      const { ratios, ...ratio } = ratioOf(runs);
      rows[`${model}, ${way}, ${concurrency} at a time, of the limit`] = {
        "a second here": medianOf(runs.ours, ({ rate }) => rate),
        "a second there": medianOf(runs.reference, ({ rate }) => rate),
        ...ratio,
      };
      lines[way].push([concurrency, ratio.ratio]);
    }
  }
  const runs = await runPairs(overHttp(ours, JUDGED), overHttp(naive, JUDGED));
  const { ratios, ...ratio } = ratioOf(runs);
  rows[`${model}, HTTP, ${JUDGED} at a time, of the naive server`] = {
    "a second here": medianOf(runs.ours, ({ rate }) => rate),
    "a second there": medianOf(runs.reference, ({ rate }) => rate),
    ...ratio,
    "loop delay p99 ms here": medianOf(runs.ours, ({ delayMs }) => delayMs),
    "loop delay p99 ms there": medianOf(runs.reference, ({ delayMs }) => delayMs),
    "health p99 ms here": medianOf(runs.ours, ({ healthMs }) => healthMs),
    "health p99 ms there": medianOf(runs.reference, ({ healthMs }) => healthMs),
  };
  const size = await limit.call("size");
  plots[model] = drawLines(
    `${model}: share of the limit (batches of ${size} rows in a loop)`,
    Object.entries(lines).map(([label, points]) => ({ label, points })),
    { xLabel: "requests at a time", yLabel: "share", xLog: true },
  );
  await Promise.all([ours, naive, limit].map((program) => program.stop()));
}

report("onnx", { rows, plots, note: `Load from ${httpLoadTool()}.` });
