/*
 * What a change of a served model costs its requests: the 99th percentile while it changes all the time, and without.
 * Takes less than 3 minutes. `BENCH_BLOCKS` is the number of pairs of blocks.
 */
import { runBlocks, tailRatio } from "./support/blocks.mjs";
import { short } from "./support/pairs.mjs";
import { startProgram } from "./support/program.mjs";
import { report } from "./support/report.mjs";

const BLOCKS = Number(process.env.BENCH_BLOCKS ?? 35);
const BLOCK_SECONDS = 1;

const rows = {};
for (const [label, kind, changesPerSecond] of [
  ["batcher and function on the event loop", "inline", 50],
  ["a thread replaced by a thread", "worker", 2],
]) {
  const program = await startProgram("migration", { kind });
  const measure = (changesPerSecond) => (seed) =>
    program.call("load", { seconds: BLOCK_SECONDS, rate: 200, seed, changesPerSecond });
  const runs = await runBlocks(measure(changesPerSecond), measure(0), BLOCKS);
  const changes = runs.ours.reduce((sum, { changes }) => sum + changes, 0);
  const { ours, reference, ...ratio } = tailRatio(runs, 99);
  rows[label] = {
    "changes a second": short(changes / BLOCKS / BLOCK_SECONDS),
    "p99 ms": ours,
    "p99 ms without": reference,
    ...ratio,
  };
  await program.stop();
}
report("migration", { rows, note: "Least and most are the 95% interval of the ratio." });
