/* Models behind HTTP and gRPC for hostile requests. */
import { answerCalls, programOptions } from "../support/program.mjs";
import { importOf } from "../support/tree.mjs";

const { tree } = programOptions();
const { batch, Triton } = await importOf(tree, "core");
const { http } = await importOf(tree, "http");
const { grpc } = await importOf(tree, "grpc");

const triton = new Triton();
const bind = (modelName, dtype, inferFunc) =>
  triton.bind({
    modelName,
    inputs: [{ name: "x", dtype, shape: [-1] }],
    outputs: [{ name: "y", dtype, shape: [-1] }],
    inferFunc: batch(inferFunc),
    config: { batching: false },
  });
bind("numbers", "FP32", ({ x }) => ({ y: x }));
bind("texts", "BYTES", () => ({ y: ["ok"] }));
bind("integers", "INT64", ({ x }) => ({ y: x }));
bind("booleans", "BOOL", ({ x }) => ({ y: x }));
const { addresses } = await triton.serve({ frontends: [http({ port: 0 }), grpc({ port: 0 })] });
const local = ({ url }) => url.replace("localhost", "127.0.0.1");

/**
 * Turns of the event loop in milliseconds: the time, but at most the processor time that the process used. A busy
 * machine lengthens the first alone.
 */
let turns = [];
let since = performance.now();
let used = process.cpuUsage();
setInterval(() => {
  const now = performance.now();
  const { user, system } = process.cpuUsage(used);
  turns.push(Math.min(now - since, (user + system) / 1000));
  since = now;
  used = process.cpuUsage();
}, 1);

answerCalls({
  turns: () => {
    const sorted = turns.sort((a, b) => b - a);
    turns = [];
    return { longest: sorted[0], p99: sorted[Math.floor(sorted.length / 100)] };
  },
  urls: () => ({
    http: local(addresses.http),
    grpc: `http://${local(addresses.grpc).replace(/^\w+:\/\//, "")}`,
  }),
  rss: () => process.memoryUsage.rss(),
});
