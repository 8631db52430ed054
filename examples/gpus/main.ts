import { gpu } from "@tritonjs/backends/gpu";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { Triton, TritonError } from "@tritonjs/core";

/*
 * A model with an instance on each GPU, or with one on the CPU of a machine without GPUs.
 *
 *   npm start
 *   GPUS=0 npm start    names the GPU of another maker than NVIDIA, which is not looked for
 */

const numbers = process.env.GPUS?.split(",").map(Number);
await using triton = new Triton({
  extensions: [gpu(numbers && { numbers })],
  logger: { error: console.error, warn: console.log, info() {}, debug() {} },
});

function bindFlowers(kind: "KIND_GPU" | "KIND_CPU") {
  return triton.bind({
    modelName: "flowers",
    inferFunc: onnxruntime({
      model: new URL("../../quickstart/iris/iris.onnx", import.meta.url),
      // The first one that works: CUDA needs NVIDIA's libraries, WebGPU a driver of Vulkan, Metal or Direct3D.
      executionProviders: kind === "KIND_GPU" ? ["cuda", "webgpu", "cpu"] : ["cpu"],
      onWarning: (message) => console.log(message),
    }),
    config: { maxBatchSize: 64, instanceGroup: { kind, count: 1 } },
  });
}

function bindWhereItCan() {
  try {
    return bindFlowers("KIND_GPU");
  } catch (error) {
    console.log(TritonError.from(error).message);
    return bindFlowers("KIND_CPU");
  }
}

const flowers = bindWhereItCan();
await flowers.ready();
for (const { name, kind, deviceId, details } of flowers.instances())
  console.log(`${name}: ${kind} ${deviceId}, provider ${details.executionProvider}`);

const { species } = await triton.infer("flowers", {
  measurements: [
    [5.1, 3.5, 1.4, 0.2],
    [6.7, 3.0, 5.2, 2.3],
  ],
});
console.log(`species ${species!.get(0, 0)} and ${species!.get(1, 0)}`);

// A callback finds its GPU in `context.device`, in the words of the libraries that it may open there.
const { kind } = flowers.instances()[0]!;
const words = triton.bind({
  modelName: "words",
  inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
  outputs: [{ name: "torch", dtype: "BYTES", shape: [1] }],
  inferFunc: (requests, { device }) => requests.map(() => ({ torch: [device.torch] })),
  config: { batching: false, instanceGroup: { kind, count: 1 } },
});
const { torch } = await words.inferSample({ x: [0] });
console.log(`PyTorch calls the device ${new TextDecoder().decode(torch.get(0))}`);

const page = await triton.metrics.metrics();
const figures = page.split("\n").filter((line) => line.startsWith("nv_gpu_"));
console.log(figures.length > 0 ? figures.join("\n") : "no metrics of GPUs: the driver lists none");
