/*
 * `npm run pictures`: draws the pictures of docs/, most of them from what the library does on a virtual clock, some
 * from figures that a benchmark saved. With `--check` it changes nothing, and fails if a picture is not as it would be
 * drawn.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { drawBatchInTime } from "./pictures/batch-in-time.mjs";
import { drawBesideTritonserver } from "./pictures/beside-tritonserver.mjs";
import { drawDataPath } from "./pictures/data-path.mjs";
import { drawEnsembleGraph } from "./pictures/ensemble-graph.mjs";
import { drawIsolationCost, drawIsolationDelay, drawReplicas } from "./pictures/measured-lines.mjs";
import { drawRateByBatching } from "./pictures/rate-by-batching.mjs";
import { drawRollingReload } from "./pictures/rolling-reload.mjs";
import { drawSequenceSlots } from "./pictures/sequence-slots.mjs";
import { drawCacheByRepetition, drawDelayByLoad } from "./pictures/simulated-lines.mjs";
import { drawThreadsAndInstances } from "./pictures/threads-and-instances.mjs";
import { root } from "./run.mjs";

const PICTURES = {
  "batch-in-time": drawBatchInTime,
  "beside-tritonserver": drawBesideTritonserver,
  "cache-by-repetition": drawCacheByRepetition,
  "data-path": drawDataPath,
  "delay-by-load": drawDelayByLoad,
  "ensemble-graph": drawEnsembleGraph,
  "isolation-cost": drawIsolationCost,
  "isolation-delay": drawIsolationDelay,
  "rate-by-batching": drawRateByBatching,
  replicas: drawReplicas,
  "rolling-reload": drawRollingReload,
  "sequence-slots": drawSequenceSlots,
  "threads-and-instances": drawThreadsAndInstances,
};

const isCheck = process.argv.includes("--check");
for (const [name, draw] of Object.entries(PICTURES)) {
  const file = join(root, "docs", "images", `${name}.svg`);
  const svg = await draw();
  if (!isCheck) writeFileSync(file, svg);
  else if (!existsSync(file) || readFileSync(file, "utf8") !== svg) {
    console.error(`docs/images/${name}.svg is not up to date: run npm run pictures`);
    process.exitCode = 1;
  }
}
