/*
 * What do fair shares cost for each request? Times the bookkeeping of a request's way through the queue: its place, its
 * charge and its leaving, with a thousand callers in turn.
 */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "rolldown";
import { root } from "../scripts/run.mjs";

const compiled = join(root, "node_modules", ".simulation", "fair-shares.mjs");
await build({
  input: join(root, "bench", "support", "fair-shares.ts"),
  platform: "node",
  external: /^[^.#/]/,
  resolve: { extensionAlias: { ".js": [".ts", ".js"] } },
  output: { file: compiled },
});
const { FairShares, InferenceRequest } = await import(pathToFileURL(compiled).href);

const CALLERS = 1000;
const COUNT = 2_000_000;
const requests = Array.from({ length: CALLERS }, (_, i) => {
  const request = new InferenceRequest("m", { inputs: new Map(), caller: `caller ${i}` });
  request.batchSize = 1;
  return request;
});
const shares = new FairShares({ by: "caller" }, 8);
let best = Number.POSITIVE_INFINITY;
for (let round = 0; round < 5; round++) {
  const start = process.hrtime.bigint();
  for (let i = 0; i < COUNT; i++) {
    const request = requests[(i * 7) % CALLERS];
    shares.place(request);
    shares.joined(request);
    shares.ran(request);
  }
  best = Math.min(best, Number(process.hrtime.bigint() - start) / COUNT);
}
console.log(`fair shares: ${(best / 1000).toFixed(3)} µs a request, with ${CALLERS} callers`);
