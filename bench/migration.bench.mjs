/* What a change of a served model costs its requests: the 99th percentile while it changes all the time, and without. */
import { median, medianOf, ratioOf, runPairs, SECONDS, short } from "./support/pairs.mjs";
import { startProgram } from "./support/program.mjs";
import { report } from "./support/report.mjs";

const rows = {};
for (const [label, kind] of [
  ["batcher and function on the event loop", "inline"],
  ["a thread replaced by a thread", "worker"],
]) {
  const program = await startProgram("migration", { kind });
  const measure = (changesPerSecond) => program.call("load", { seconds: 4 * SECONDS, changesPerSecond });
  const rate = kind === "inline" ? 50 : 2;
  const runs = await runPairs(
    () => measure(rate),
    () => measure(0),
  );
  const { ratio, least, most } = ratioOf(runs, ({ p99 }) => p99);
  rows[label] = {
    "changes a second": short(median(runs.ours.map(({ changes }) => changes / (4 * SECONDS)))),
    "p99 ms": medianOf(runs.ours, ({ p99 }) => p99),
    "p99 ms without": medianOf(runs.reference, ({ p99 }) => p99),
    ratio,
    least,
    most,
  };
  await program.stop();
}
report("migration", { rows });
