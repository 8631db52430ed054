import { onnxruntimeWeb } from "@tritonjs/backends/onnxruntime/web";
import { Triton } from "@tritonjs/core";
import { fetchHandler } from "@tritonjs/http/fetch";
import * as ort from "@tritonjs/onnxruntime-wasm/bundle";

/** Opens the model, from bytes that the executable has in it, and returns what answers requests for it. */
export async function openIris(files: { readonly wasm: Uint8Array; readonly model: Uint8Array }) {
  ort.env.wasm.wasmBinary = files.wasm;
  // Threads would need files of their own.
  ort.env.wasm.numThreads = 1;
  const triton = new Triton();
  const inferFunc = await onnxruntimeWeb({ ort, model: files.model });
  const iris = triton.bind({ modelName: "iris", inferFunc, config: { maxBatchSize: 16 } });
  await iris.ready();
  return { triton, answer: fetchHandler(triton) };
}
