/*
 * ONNX Runtime as WebAssembly for pages, workers at the edge and single files: one module, which needs only the `.wasm`
 * file. `onnxruntimeWeb` of `@tritonjs/backends/onnxruntime/web` takes it.
 */
export * from "#ort-bundle";
