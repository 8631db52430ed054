/*
 * What does a request in process cost? Compares FP32[16] through a batch callback that does nothing with `dataloader`,
 * which batches the same rows without any check, and with awaiting a function.
 */

import { medianOf, ratioOf, runPairs, SECONDS, short } from "./support/pairs.mjs";
import { drawRatios } from "./support/plots.mjs";
import { startProgram } from "./support/program.mjs";
import { report } from "./support/report.mjs";

const references = { dataloader: [1, 64, 1024], "dataloader-stacked": [1, 64, 1024], function: [1] };
const targets = { 64: 1, 1024: 1 };

const rows = {};
const ratios = [];
const ours = await startProgram("in-process", { kind: "tritonjs" });
for (const [kind, concurrencies] of Object.entries(references)) {
  const reference = await startProgram("in-process", { kind });
  for (const concurrency of concurrencies) {
    const call = (program) => () => program.call("run", concurrency, SECONDS);
    const runs = await runPairs(call(ours), call(reference));
    const { ratios: all, ...ratio } = ratioOf(runs);
    const micros = (one) => short(1e6 / medianOf(one, ({ rate }) => rate));
    const cpu = (one) => medianOf(one, ({ cpuMicroseconds }) => cpuMicroseconds);
    const label = `${kind}, ${concurrency} at a time`;
    rows[label] = {
      "µs here": micros(runs.ours),
      "µs there": micros(runs.reference),
      "CPU µs here": cpu(runs.ours),
      "CPU µs there": cpu(runs.reference),
      ...ratio,
    };
    ratios.push({ label, ...ratio, target: targets[concurrency] });
  }
  await reference.stop();
}
await ours.stop();

const shown = ratios.filter(({ label }) => label.startsWith("dataloader"));
report("in-process", {
  rows,
  plots: { "": [drawRatios, "Requests a second in process, compared with dataloader", shown] },
});
