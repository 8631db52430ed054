import { onnxruntimeWeb } from "@tritonjs/backends/onnxruntime/web";
import { serveWebWorker } from "@tritonjs/backends/web-worker";
import { WebTriton } from "@tritonjs/core/web";
import * as ort from "@tritonjs/onnxruntime-wasm/bundle";

/* The module of the web worker: it opens the model, and runs the batches that the page joins. */

ort.env.wasm.wasmPaths = { wasm: new URL("/ort.wasm", self.location.origin).href };
ort.env.wasm.numThreads = 1;
const model = await (await fetch("/iris.onnx")).arrayBuffer();
const inferFunc = await onnxruntimeWeb({ ort, model });
serveWebWorker(new WebTriton().bind({ modelName: "iris", inferFunc, config: { maxBatchSize: 16 } }));
