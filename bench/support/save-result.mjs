import { mkdirSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus } from "node:os";
import { join } from "node:path";
import { root } from "../../scripts/run.mjs";

/** Writes figures under `bench/results/`, with what they were measured on. */
export function saveResult(name, figures) {
  const folder = join(root, "bench", "results");
  mkdirSync(folder, { recursive: true });
  const machine = {
    cpu: cpus()[0]?.model,
    cores: availableParallelism(),
    node: process.version,
    platform: process.platform,
  };
  writeFileSync(join(folder, `${name}.json`), `${JSON.stringify({ machine, figures }, null, 2)}\n`);
}
