/* The module of the page's web workers. */
import { onnxruntimeWeb } from "@tritonjs/backends/onnxruntime/web";
import { serveWebWorker } from "@tritonjs/backends/web-worker";
import { WebTriton } from "@tritonjs/core/web";
import * as ort from "onnxruntime-web/wasm";

ort.env.wasm.wasmPaths = new URL("/ort/", self.location.origin).href;
ort.env.wasm.numThreads = 1;
const model = await (await fetch("/models/iris.onnx")).arrayBuffer();
const inferFunc = await onnxruntimeWeb({ ort, model });
serveWebWorker(new WebTriton().bind({ modelName: "iris", inferFunc, config: { maxBatchSize: 2 } }));
