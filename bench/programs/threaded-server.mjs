/* Identity models behind HTTP and gRPC, in frontend threads or on the main thread, with the CPU time of each thread. */
import { readdirSync, readFileSync } from "node:fs";
import { answerCalls, programOptions } from "../support/program.mjs";
import { importOf } from "../support/tree.mjs";

const { tree, threads, computeMs = 0 } = programOptions();
const { batch, Triton } = await importOf(tree, "core");
const { http } = await importOf(tree, "http");
const { grpc } = await importOf(tree, "grpc");

const triton = new Triton();
/** Returns its inputs, after some work on the event loop. */
const inferFunc = batch(({ x }) => {
  const end = performance.now() + computeMs;
  while (performance.now() < end);
  return { y: x };
});
const identity = (modelName, shape, config) =>
  triton.bind({
    modelName,
    inputs: [{ name: "x", dtype: "FP32", shape }],
    outputs: [{ name: "y", dtype: "FP32", shape }],
    inferFunc,
    config,
  });
identity("small", [16], { maxBatchSize: computeMs === 0 ? 64 : 1 });
identity("large", [-1], { batching: false });
const at = { port: 0, address: "127.0.0.1" };
const { addresses } = await triton.serve({ frontends: [http(at), grpc(at)], frontendThreads: threads });

/** CPU microseconds of the main thread, and of all others: frontends, garbage collectors and compilers. */
function cpuOfThreads() {
  const ticks = (id) => {
    const text = readFileSync(`/proc/self/task/${id}/stat`, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return Number(fields[11]) + Number(fields[12]);
  };
  const all = readdirSync("/proc/self/task");
  const sum = (ids) => ids.reduce((total, id) => total + ticks(id), 0) * 10_000;
  const main = String(process.pid);
  return { engine: sum([main]), others: sum(all.filter((id) => id !== main)) };
}

answerCalls({ urls: () => ({ http: addresses.http.url, grpc: addresses.grpc.url }), cpu: cpuOfThreads });
