/* Finds people and things in photographs. `npm start -- photo.jpg` looks at photographs of your own. */
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { Triton } from "@tritonjs/core";
import { readPhotographs } from "./photographs.js";
import { bindDetector } from "./pipeline.js";

const paths = process.argv.slice(2);
const photographs =
  paths.length > 0
    ? new Map(await Promise.all(paths.map(async (path) => [basename(path), await readFile(path)] as const)))
    : await readPhotographs();

await using triton = new Triton({ responseCache: { byteSize: 1_000_000 } });
const { ensemble, network } = bindDetector(triton);
await triton.ready();

async function look(photograph: Uint8Array): Promise<string> {
  const { things } = await ensemble.infer({ photograph: [[photograph]] });
  const counts = new Map<string, number>();
  for (const kind of things.strings()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return [...counts].map(([kind, count]) => `${kind} x${count}`).join(", ") || "nothing";
}

const delay = monitorEventLoopDelay({ resolution: 5 });
delay.enable();
const begin = performance.now();
const found = await Promise.all([...photographs.values()].map(look));
const ms = performance.now() - begin;
delay.disable();

for (const [i, name] of [...photographs.keys()].entries()) console.log(`${name}: ${found[i]}`);
console.log(`${photographs.size} photographs in ${ms.toFixed(0)} ms`);
console.log(`delay of the event loop meanwhile, median: ${(delay.percentile(50) / 1e6).toFixed(0)} ms`);

const again = performance.now();
await look(photographs.values().next().value!);
const runs = network.statistics().executionCount;
console.log(`one of them again: ${(performance.now() - again).toFixed(0)} ms, ${runs} runs of the network`);
