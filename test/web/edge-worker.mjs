/* A worker at the edge with models. The runtime allows timers and random numbers only while it answers a request. */
import { onnxruntimeWeb } from "@tritonjs/backends/onnxruntime/web";
import { batch, Triton } from "@tritonjs/core";
import { fetchHandler } from "@tritonjs/http/fetch";
import * as ort from "../../packages/onnxruntime-wasm/dist/bundle.js";
import model from "./iris.onnx";
import runtime from "./ort-wasm-simd-threaded.wasm";

// Such a runtime compiles no WebAssembly from bytes. It has compiled the imported module.
const { instantiate } = WebAssembly;
WebAssembly.instantiate = async (_bytes, imports) => ({
  module: runtime,
  instance: await instantiate(runtime, imports),
});
ort.env.wasm.wasmBinary = new ArrayBuffer(0);
ort.env.wasm.numThreads = 1;

let opened;

async function open() {
  const triton = new Triton({ requestMemory: { byteSize: 64e6 } });
  triton.bind({
    modelName: "double",
    inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
    inferFunc: batch(({ x }) => {
      for (let i = 0; i < x.data.length; i++) x.data[i] *= 2;
      return { y: x };
    }),
    config: { maxBatchSize: 8 },
  });
  triton.bind({ modelName: "iris", inferFunc: await onnxruntimeWeb({ ort, model }) });
  await triton.ready();
  return fetchHandler(triton);
}

export default {
  async fetch(request) {
    opened ??= open();
    const handler = await opened;
    return handler(request);
  },
};
