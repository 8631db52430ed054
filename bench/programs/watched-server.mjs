/* An identity model, in process and over HTTP, on a server with the dashboard. */

import { serviceOf } from "@tritonjs/server";
import { answerCalls, programOptions } from "../support/program.mjs";
import { importOf } from "../support/tree.mjs";

const WIDTH = 16;
const { tree } = programOptions();
const { batch, Triton } = await importOf(tree, "core");
const { http } = await importOf(tree, "http");
const { dashboard } = await importOf(tree, "http", "dashboard/index");

const row = new Float32Array(WIDTH).fill(1);
const triton = new Triton({ security: { restrictedEndpoints: [] } });
const model = triton.bind({
  modelName: "small",
  inputs: [{ name: "x", dtype: "FP32", shape: [WIDTH] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [WIDTH] }],
  inferFunc: batch(({ x }) => ({ y: x })),
  config: { maxBatchSize: 64 },
});
await model.ready();
const { url } = await http({ port: 0, pages: dashboard() }).start(serviceOf(triton));

/** Keeps `concurrency` requests in flight; returns requests a second and the CPU time of one. */
async function run(concurrency, seconds) {
  const start = performance.now();
  const end = start + seconds * 1000;
  let answers = 0;
  const client = async () => {
    do {
      for (let i = 0; i < 16; i++) await model.inferSample({ x: row });
      answers += 16;
    } while (performance.now() < end);
  };
  const cpu = process.cpuUsage();
  await Promise.all(Array.from({ length: concurrency }, client));
  const { user, system } = process.cpuUsage(cpu);
  return {
    rate: (answers * 1000) / (performance.now() - start),
    cpuMicroseconds: (user + system) / answers,
  };
}

answerCalls({ run, url: () => url.replace("localhost", "127.0.0.1") });
