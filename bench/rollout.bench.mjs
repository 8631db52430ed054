/*
 * What a rollout costs the requests: shadows of each tenth request, by the 99th percentile of the old version and by
 * processor time; captures of one request in a hundred, by processor time. That is a hundredth of what captures of all
 * requests add, since the difference itself is less than the noise of this measurement. Takes less than 3 minutes.
 * `BENCH_BLOCKS` is the number of pairs of blocks with and without shadows.
 */
import { runBlocks, tailRatio } from "./support/blocks.mjs";
import { medianOf, ratioOf, runPairs, SECONDS } from "./support/pairs.mjs";
import { startProgram } from "./support/program.mjs";
import { report } from "./support/report.mjs";

const rows = {};
const BLOCKS = Number(process.env.BENCH_BLOCKS ?? 90);
const shadows = await startProgram("rollout", {});
const load = (mode) => (seed) => shadows.call("load", { seconds: 0.5, rate: 400, mode, seed });
const blocks = await runBlocks(load("shadows"), load("plain"), BLOCKS);
for (const percent of [50, 90, 99]) {
  const { ours, reference, ...ratio } = tailRatio(blocks, percent);
  rows[`p${percent} with shadows of each tenth request`] = { ms: ours, "ms without": reference, ...ratio };
}
const use = ratioOf(blocks, ({ cpu }) => cpu);
rows["processor time with shadows of each tenth request"] = {
  µs: medianOf(blocks.ours, ({ cpu }) => cpu),
  "µs without": medianOf(blocks.reference, ({ cpu }) => cpu),
  ratio: use.ratio,
};
const total = (name) => blocks.ours.reduce((sum, { shadow }) => sum + shadow[name], 0);
const note =
  `Of the copies, ${total("answered")} were answered and ${total("shed")} dropped. ` +
  "Least and most of the percentiles are the 95% interval of the ratio. " +
  "Captures of 1% are a hundredth of what captures of all requests add.";
await shadows.stop();

const [captured, plain] = [await startProgram("rollout", { rate: 1 }), await startProgram("rollout", {})];
const client = await startProgram("http-client");
const body = (width) =>
  Buffer.from(
    JSON.stringify({
      inputs: [
        { name: "x", shape: [1, width], datatype: "FP32", data: Array.from({ length: width }, () => 0.5) },
      ],
    }),
  ).toString("base64");
/** Microseconds of processor time of a request over HTTP. */
async function cost(program, model, width) {
  await program.call("use");
  const { rate } = await client.call("run", {
    url: `${await program.call("url")}/v2/models/${model}/infer`,
    headers: { "content-type": "application/json" },
    body: body(width),
    connections: 8,
    seconds: 2 * SECONDS,
  });
  const { cpuMs } = await program.call("use");
  return { cpu: (1000 * cpuMs) / (rate * 2 * SECONDS) };
}
for (const [model, width, name] of [
  ["small", 16, "64 B"],
  ["large", 16_384, "64 KB"],
]) {
  const { ours: all, reference } = await runPairs(
    () => cost(captured, model, width),
    () => cost(plain, model, width),
  );
  const ours = all.map(({ cpu }, i) => ({ cpu: reference[i].cpu + 0.01 * (cpu - reference[i].cpu) }));
  const { ratio, least, most } = ratioOf({ ours, reference }, ({ cpu }) => cpu);
  rows[`processor time with captures of 1%, ${name} over HTTP`] = {
    µs: medianOf(ours, ({ cpu }) => cpu),
    "µs without": medianOf(reference, ({ cpu }) => cpu),
    ratio,
    least,
    most,
  };
}
await Promise.all([captured.stop(), plain.stop(), client.stop()]);
report("rollout", { rows, note });
