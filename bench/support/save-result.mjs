import { mkdirSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, totalmem } from "node:os";
import { join } from "node:path";
import { root } from "../../scripts/run.mjs";

/** The machine of a measurement. A load well above 0 before a run means that the machine had other work. */
export const machine = {
  cpu: cpus()[0]?.model,
  cores: availableParallelism(),
  memoryGiB: Math.round(totalmem() / 2 ** 30),
  node: process.version,
  platform: process.platform,
  loadAtStart: loadavg().map((load) => Math.round(load * 10) / 10),
};

/** The machine in one sentence. */
export const machineNote = () =>
  `${machine.cores} cores (${machine.cpu}), Node ${process.versions.node}, load of the machine before the run ${machine.loadAtStart[0]}`;

export const resultsFolder = () => process.env.BENCH_RESULTS ?? join(root, "bench", "results");

/** Writes figures under `bench/results/` (or `BENCH_RESULTS`), with the machine they were measured on. */
export function saveResult(name, figures) {
  const folder = resultsFolder();
  mkdirSync(folder, { recursive: true });
  const result = { machine: { ...machine, date: new Date().toISOString() }, figures };
  writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(result, null, 2)}\n`);
}
