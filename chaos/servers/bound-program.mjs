/*
 * A program with bound models, a repository of models that requests load, and a cache in Redis. It sends requests in
 * process as well, and tells its parent how each of them ended.
 */
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { returnFreeMemory } from "@tritonjs/cli/process-memory";
import { batch, sample, Triton, TritonError } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { http, metrics } from "@tritonjs/http";
import { textGeneration } from "@tritonjs/llm";
import { redisCache } from "@tritonjs/operations/redis";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { inProcessTraffic } from "../load/in-process.mjs";
import { MAX_BATCH } from "../repository/models.mjs";

const { folder, redis, seed } = JSON.parse(process.argv[2]);

returnFreeMemory();

const line = (level) => (message) => process.stderr.write(`${level}1122 ${message}\n`);
const triton = new Triton({
  logger: { error: line("E"), warn: line("W"), info: line("I"), debug() {} },
  ...(redis === undefined ? {} : { responseCache: redisCache({ url: redis, lookupTimeoutMs: 200 }) }),
  extensions: [repository({ modelRepository: join(folder, "controlled"), modelControlMode: "explicit" })],
});

const floats = (name, size) => [{ name, dtype: "FP32", shape: [size] }];
const doubling = { inputs: floats("x", -1), outputs: floats("y", -1) };
const batching = { maxBatchSize: MAX_BATCH };
const double = batch(async ({ x }) => {
  await new Promise((resolve) => setTimeout(resolve, 2));
  return { y: x.data.map((value) => 2 * value) };
});
const fileOf = (name) => pathToFileURL(join(folder, "modules", name));

const models = {
  inline: triton.bind({ modelName: "inline", ...doubling, inferFunc: double, config: batching }),
  thread: triton.bind({
    modelName: "thread",
    ...doubling,
    inferFunc: fileOf("double.mjs"),
    config: { ...batching, instanceGroup: { count: 2, isolation: "worker" } },
  }),
  process: triton.bind({
    modelName: "process",
    ...doubling,
    inferFunc: fileOf("double.mjs"),
    config: { ...batching, instanceGroup: { count: 2, isolation: "process" } },
  }),
  onnx: triton.bind({
    modelName: "onnx",
    inferFunc: onnxruntime({ model: fileURLToPath(fileOf("double.onnx")) }),
    config: batching,
  }),
  total: triton.bind({
    modelName: "total",
    inputs: floats("x", 1),
    outputs: floats("y", 1),
    inferFunc: fileOf("sum.mjs"),
    config: {
      ...batching,
      instanceGroup: { isolation: "process" },
      sequence: { maxSequenceIdleMicroseconds: 600_000_000, maxCandidateSequences: 16 },
    },
  }),
  count: triton.bind({
    modelName: "count",
    inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
    outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
    inferFunc: sample(async function* ({ x }) {
      for (let i = 0; i < x.get(0); i++) {
        await new Promise((resolve) => setTimeout(resolve, 1));
        yield { y: [i] };
      }
    }),
  }),
  cached: triton.bind({
    modelName: "cached",
    ...doubling,
    inferFunc: double,
    config: { ...batching, responseCache: true },
  }),
};

const [stories] = ["stories", "hostile_template"].map((modelName) => {
  const directory = fileURLToPath(fileOf(modelName));
  return triton.bind({ modelName, inferFunc: textGeneration({ directory, intraOpNumThreads: 1 }) });
});
// The first format starts a thread, whose descriptors stay.
const format = JSON.stringify({ guided_choice: ["a"] });
for await (const _ of stories.stream({ text_input: ["Once"], sampling_parameters: [format] }));

const { addresses } = await triton.serve({
  frontends: [http, grpc, metrics].map((open) => open({ address: "127.0.0.1", port: 0 })),
});
const NAMES = { http: "HTTPService", grpc: "GRPCInferenceService", metrics: "Metrics Service" };
for (const [name, { port }] of Object.entries(addresses))
  console.log(`Started ${NAMES[name]} at 127.0.0.1:${port}`);
const { accessToken } = serviceOf(triton);
process.send({ type: "token", accessToken });

const traffic = inProcessTraffic({
  models,
  seed,
  isError: TritonError.is,
  report: (end) => process.send(end),
});

process.on("message", async ({ type }) => {
  if (type === "load") traffic.start();
  else if (type === "quiet") {
    await traffic.stop();
    process.send({ type: "quiet" });
  } else if (type === "heap") {
    for (let i = 0; i < 3; i++) {
      globalThis.gc();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    process.send({ type: "heap", bytes: process.memoryUsage().heapUsed });
  }
});
process.on("disconnect", () => process.exit(1));
process.once("SIGTERM", async () => {
  await triton.close();
  process.exit(0);
});
