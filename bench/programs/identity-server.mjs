/* Identity models behind HTTP and gRPC. */

import { serviceOf } from "@tritonjs/server";
import { answerCalls, programOptions } from "../support/program.mjs";
import { importOf, importProcessMemory } from "../support/tree.mjs";

const { tree } = programOptions();
const { batch, Triton } = await importOf(tree, "core");
const { keepHeapRoom } = await importProcessMemory(tree);
const { http } = await importOf(tree, "http");
const { grpc } = await importOf(tree, "grpc");

// As the page on operations asks of a program that serves large requests. Older revisions lack it.
keepHeapRoom?.();
const triton = new Triton();
const identity = (modelName, shape, config) =>
  triton.bind({
    modelName,
    inputs: [{ name: "x", dtype: "FP32", shape }],
    outputs: [{ name: "y", dtype: "FP32", shape }],
    inferFunc: batch(({ x }) => ({ y: x })),
    config,
  });
identity("small", [16], { maxBatchSize: 64 });
identity("large", [-1], { batching: false });
await triton.ready();
const { url: httpUrl } = await http({ port: 0 }).start(serviceOf(triton));
const { url: grpcUrl } = await grpc({ port: 0 }).start(serviceOf(triton));
const urls = {
  http: httpUrl.replace("localhost", "127.0.0.1"),
  grpc: grpcUrl.replace("localhost", "127.0.0.1"),
};

answerCalls({ urls: () => urls });
