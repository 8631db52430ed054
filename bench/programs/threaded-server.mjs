/* Identity models behind HTTP and gRPC, in frontend threads or on the main thread, with the CPU time of each thread. */
import { readdirSync, readFileSync } from "node:fs";
import { answerCalls, programOptions } from "../support/program.mjs";
import { importOf, importProcessMemory } from "../support/tree.mjs";

const { tree, threads, computeMs = 0 } = programOptions();
const { batch, Triton } = await importOf(tree, "core");
const { keepHeapRoom, limitMalloc } = await importProcessMemory(tree);
const { http } = await importOf(tree, "http");
const { grpc } = await importOf(tree, "grpc");

// As `tritonjs serve` does.
keepHeapRoom();
limitMalloc(process.env);

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

/**
 * CPU microseconds of the main thread, and of all others: frontends, garbage collectors and compilers. And how often a
 * thread went to sleep.
 */
function cpuOfThreads() {
  const use = { engine: 0, others: 0, switches: 0 };
  for (const id of readdirSync("/proc/self/task")) {
    const folder = `/proc/self/task/${id}`;
    const [nanoseconds] = readFileSync(`${folder}/schedstat`, "utf8").split(" ");
    use[id === String(process.pid) ? "engine" : "others"] += Number(nanoseconds) / 1000;
    const status = readFileSync(`${folder}/status`, "utf8");
    use.switches += Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)[1]);
  }
  return use;
}

answerCalls({ urls: () => ({ http: addresses.http.url, grpc: addresses.grpc.url }), cpu: cpuOfThreads });
