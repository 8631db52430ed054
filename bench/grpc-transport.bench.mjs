/*
 * Is the port on node:http2 faster than a server of grpc-js? One client calls an identity model on both, in turns, so that
 * other work on the machine affects both alike. A ratio above 1 means that http2 is faster.
 */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { InferenceServerClient } from "@tritonjs/client/grpc";
import { saveResult } from "./support/report.mjs";

const PAIRS = 7;
const ROUND_MS = 700;
const WARM_UP_MS = 300;

const tensor = (bytes) => ({ x: { shape: [1, bytes], data: new Uint8Array(bytes).fill(1) } });

/** Answers a second to unary calls, `concurrency` of them at a time. */
const unary = (bytes, concurrency) => async (client, ms) => {
  const inputs = tensor(bytes);
  const start = performance.now();
  let answers = 0;
  const ask = async () => {
    for (; performance.now() - start < ms; answers++) await client.infer("identity", { inputs });
  };
  await Promise.all(Array.from({ length: concurrency }, ask));
  return (answers * 1000) / (performance.now() - start);
};

/** Answers a second on one stream, whose requests do not wait for answers. */
const stream = (bytes) => async (client, ms) => {
  const request = { modelName: "identity", inputs: tensor(bytes) };
  const start = performance.now();
  let answers = 0;
  async function* requests() {
    for (let sent = 0; performance.now() - start < ms; sent++) {
      yield request;
      if (sent % 32 === 31) await new Promise((resolve) => setImmediate(resolve));
    }
  }
  for await (const { error } of client.streamInfer(requests())) {
    if (error) throw error;
    answers++;
  }
  return (answers * 1000) / (performance.now() - start);
};

const cases = {
  "64 B, 8 at a time": unary(64, 8),
  "600 KB, 4 at a time": unary(600_000, 4),
  "stream of 64 B": stream(64),
};

const server = new Worker(new URL("./support/grpc-servers.mjs", import.meta.url));
const [urls] = await once(server, "message");
const clients = Object.fromEntries(
  Object.entries(urls).map(([transport, url]) => [transport, new InferenceServerClient(url)]),
);

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];
const round = (value) => Math.round(value * 100) / 100;
const rows = {};
for (const [name, run] of Object.entries(cases)) {
  for (const client of Object.values(clients)) await run(client, WARM_UP_MS);
  const pairs = [];
  for (let pair = 0; pair < PAIRS; pair++) {
    const http2 = await run(clients.http2, ROUND_MS);
    pairs.push({ http2, grpcJs: await run(clients["grpc-js"], ROUND_MS) });
  }
  const ratios = pairs.map(({ http2, grpcJs }) => http2 / grpcJs);
  rows[name] = {
    "http2 a second": Math.round(median(pairs.map(({ http2 }) => http2))),
    "grpc-js a second": Math.round(median(pairs.map(({ grpcJs }) => grpcJs))),
    "ratio, median": round(median(ratios)),
    "ratio, least": round(Math.min(...ratios)),
    "ratio, most": round(Math.max(...ratios)),
  };
}
for (const client of Object.values(clients)) client.close();
await server.terminate();

console.table(rows);
saveResult("grpc-transport", rows);
