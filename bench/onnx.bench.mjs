/*
 * How close does a batched ONNX model come to the highest rate of the model, and how far is it from the naive server?
 * Also measures the delay of other requests meanwhile. All sessions have one thread, including that of the limit.
 */
import { binaryBody, httpLoad, httpLoadTool } from "./support/load.mjs";
import { medianOf, PAIRS, ratioOf, runPairs, SECONDS, short } from "./support/pairs.mjs";
import { drawLines } from "./support/plots.mjs";
import { probeHealth } from "./support/probe-health.mjs";
import { startProgram } from "./support/program.mjs";
import { report } from "./support/report.mjs";

const CONCURRENCIES = [1, 16, 64, 256];
/** Fewer pairs are enough at other concurrencies. */
const JUDGED = 64;
/** The models of the plots, and one that gains almost nothing from batches. */
const models = {
  mlp: { shape: [1, 512], concurrencies: CONCURRENCIES },
  conv: { shape: [1, 3, 32, 32], concurrencies: CONCURRENCIES },
  convolutions: { shape: [1, 3, 32, 32], concurrencies: [JUDGED] },
};

const rows = {};
const plots = {};
const sizes = [];
const measured = { models: [] };
for (const [model, { shape, concurrencies }] of Object.entries(models)) {
  const limit = await startProgram("onnx-limit", { model });
  const maxBatchSize = await limit.call("size");
  const [ours, naive] = await Promise.all([
    startProgram("onnx-server", { model, maxBatchSize }),
    startProgram("naive-server", { model }),
  ]);
  sizes.push(`${model} ${maxBatchSize}`);
  const request = binaryBody(model, shape);
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
  for (const warmUp of [inProcess(JUDGED), overHttp(ours, JUDGED), overHttp(naive, JUDGED)]) await warmUp();
  for (const concurrency of concurrencies) {
    const options = { pairs: concurrency === JUDGED ? PAIRS : Math.min(2, PAIRS), warmUp: false };
    const sides = { "in process": inProcess(concurrency), HTTP: overHttp(ours, concurrency) };
    for (const [way, side] of Object.entries(sides)) {
      await ours.call("batchSize");
      const runs = await runPairs(side, atLimit, options);
      const { ratios, ...ratio } = ratioOf(runs);
      rows[`${model}, ${way}, ${concurrency} at a time, of the limit`] = {
        "a second here": medianOf(runs.ours, ({ rate }) => rate),
        "a second there": medianOf(runs.reference, ({ rate }) => rate),
        ...ratio,
        "rows a batch": short(await ours.call("batchSize")),
      };
      lines[way].push([concurrency, ratio.ratio]);
    }
  }
  const runs = await runPairs(overHttp(ours, JUDGED), overHttp(naive, JUDGED), { warmUp: false });
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
  measured.models.push({
    name: model,
    unbatched: medianOf(runs.reference, ({ rate }) => rate),
    batched: medianOf(runs.ours, ({ rate }) => rate),
  });
  if (concurrencies.length > 1) {
    plots[model] = [
      drawLines,
      `${model}: share of the limit (batches of ${maxBatchSize} rows in a loop)`,
      Object.entries(lines).map(([label, points]) => ({ label, points })),
      { xLabel: "requests at a time", yLabel: "share", xLog: true },
    ];
  }
  await Promise.all([ours, naive, limit].map((program) => program.stop()));
}

report("onnx", {
  rows,
  plots,
  measured,
  note: `Load from ${httpLoadTool()}. Best batch, which is the largest here too: ${sizes.join(", ")}.`,
});
