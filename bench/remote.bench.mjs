/*
 * A model on other servers. Latency of a request against calling a replica directly, at low load. Throughput of two
 * replicas of which one is three times as fast, against sending them requests in turn.
 */

import { remote } from "@tritonjs/backends/remote";
import { InferenceServerClient } from "@tritonjs/client/grpc";
import { batch, Triton } from "@tritonjs/core";
import { report } from "./support/report.mjs";

const TENSOR = [{ dtype: "FP32", shape: [256] }];
const INPUTS = TENSOR.map((spec) => ({ name: "x", ...spec }));
const OUTPUTS = TENSOR.map((spec) => ({ name: "y", ...spec }));
const WARM_MS = 500;
const MEASURED_MS = 3000;
const ROUNDS = 2;
const ROW = new Float32Array(256).fill(1);

const round = (value, digits = 2) => Number(value.toFixed(digits));
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const median = (values) => values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)];

/** A server whose model sleeps for `ms` with each request. */
async function replica(ms) {
  const triton = new Triton({ httpPort: 0, grpcPort: 0, allowMetrics: false, exitTimeoutSecs: 0 });
  const inferFunc = batch(async ({ x }) => {
    await sleep(ms);
    return { y: x };
  });
  triton.bind({ modelName: "m", inputs: INPUTS, outputs: OUTPUTS, inferFunc, config: { maxBatchSize: 1 } });
  const { addresses } = await triton.serve();
  return { triton, url: addresses.grpc.url };
}

/** Milliseconds of one request after another, in turns of both ways, as medians. */
async function latency(direct, through, count) {
  const times = { direct: [], through: [] };
  for (let i = 0; i < count; i++) {
    for (const [name, call] of [
      ["direct", direct],
      ["through", through],
    ]) {
      const start = performance.now();
      await call();
      times[name].push(performance.now() - start);
    }
  }
  return { direct: median(times.direct.slice(20)), through: median(times.through.slice(20)) };
}

/** Requests per second of `clients` loops, each of which sends its next request after an answer. */
async function throughput(call, clients) {
  let done = 0;
  const begin = performance.now() + WARM_MS;
  const end = begin + MEASURED_MS;
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (performance.now() < end) {
        await call();
        const now = performance.now();
        if (now >= begin && now < end) done++;
      }
    }),
  );
  return (done * 1000) / MEASURED_MS;
}

const rows = {};

{
  const far = await replica(5);
  const client = new InferenceServerClient(far.url);
  const local = new Triton({ exitTimeoutSecs: 0 });
  const inferFunc = await remote({ urls: far.url, model: "m" });
  const model = local.bind({ modelName: "far", inferFunc });
  const direct = () => client.infer("m", { inputs: { x: { datatype: "FP32", shape: [1, 256], data: ROW } } });
  const through = () => model.inferSample({ x: ROW });
  const ms = await latency(direct, through, 200);
  rows["latency, one request at a time"] = {
    "direct ms": round(ms.direct),
    "through remote ms": round(ms.through),
    ratio: round(ms.through / ms.direct),
  };
  client.close();
  await local.close();
  await far.triton.close();
}

{
  const [fast, slow] = [await replica(40), await replica(120)];
  const urls = [fast.url, slow.url];
  const clients = urls.map((url) => new InferenceServerClient(url));
  const at = (client) =>
    client.infer("m", { inputs: { x: { datatype: "FP32", shape: [1, 256], data: ROW } } });
  const local = new Triton({ exitTimeoutSecs: 0 });
  const inferFunc = await remote({ urls, model: "m" });
  const model = local.bind({ modelName: "far", inferFunc });
  const several = new InferenceServerClient(urls);
  let turn = 0;
  const ways = {
    fast: [() => at(clients[0]), 4],
    slow: [() => at(clients[1]), 4],
    inTurn: [() => at(clients[turn++ % 2]), 4],
    through: [() => model.inferSample({ x: ROW }), 8],
    leastLoaded: [() => at(several), 4],
  };
  const sums = Object.fromEntries(Object.keys(ways).map((name) => [name, 0]));
  // In rounds, so that another load of the machine meets all ways alike.
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, [call, loops]] of Object.entries(ways))
      sums[name] += (await throughput(call, loops)) / ROUNDS;
  }
  const { fast: fastAlone, slow: slowAlone, inTurn, through, leastLoaded } = sums;
  const added = fastAlone + slowAlone;
  rows["throughput, replicas 1:3"] = {
    "added requests/s": round(added, 1),
    "in turn, share": round(inTurn / added),
    "remote, share": round(through / added),
    "client of both, share": round(leastLoaded / added),
  };
  several.close();
  for (const client of clients) client.close();
  await local.close();
  for (const { triton } of [fast, slow]) await triton.close();
}

report("remote", { rows, document: "remote.md" });
