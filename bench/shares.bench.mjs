/*
 * What do fair shares cost for each request? A model that does nothing is called in process, 64 requests of eight callers
 * at a time, with shares, with deadlines and with both. Each setting runs in turn with none of them, and the cost is the
 * median difference in processor time. Then the bookkeeping alone is timed, with a thousand callers.
 */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { batch, Triton } from "@tritonjs/core";
import { deadlines, fairShares } from "@tritonjs/scheduling";
import { build } from "rolldown";
import { root } from "../scripts/run.mjs";
import { median } from "./support/pairs.mjs";

const ROUNDS = 9;
const EACH = 100_000;
const LANES = 64;
const SETTINGS = {
  none: {},
  shares: fairShares({ by: "caller" }),
  deadlines: deadlines(),
  "shares, deadlines": deadlines({ shares: { by: "caller" } }),
};

const triton = new Triton();
const models = Object.entries(SETTINGS).map(([name, batcher], i) => {
  const model = triton.bind({
    modelName: `m${i}`,
    inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
    inferFunc: batch(({ x }) => ({ y: x })),
    config: { maxBatchSize: LANES, batcher },
  });
  return { name, model, costs: [] };
});
const callers = Array.from({ length: 8 }, (_, i) => ({ parameters: { caller: `caller ${i}` } }));

async function call(model, count) {
  const lane = async (own) => {
    const options = callers[own % callers.length];
    for (let i = own; i < count; i += LANES) await model.inferSample({ x: [i] }, options);
  };
  await Promise.all(Array.from({ length: LANES }, (_, own) => lane(own)));
}

for (const { model } of models) await call(model, EACH / 2);
for (let round = 0; round < ROUNDS; round++) {
  for (const { model, costs } of models) {
    const before = process.cpuUsage();
    await call(model, EACH);
    const { user, system } = process.cpuUsage(before);
    costs.push((user + system) / EACH);
  }
}
await triton.close();
const [none] = models;
for (const { name, costs } of models) {
  const more = median(costs.map((cost, i) => cost - none.costs[i]));
  console.log(`${name}: ${median(costs).toFixed(2)} µs a request, ${more.toFixed(2)} µs more than none`);
}

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
  request.extra = { due: Number.POSITIVE_INFINITY, order: 0, ticket: i, share: undefined, charge: 0 };
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
console.log(`bookkeeping: ${(best / 1000).toFixed(3)} µs a request, with ${CALLERS} callers`);
