/*
 * ONNX Runtime as WebAssembly for Node.js, Bun and Deno: the engine `wasm` of `@tritonjs/backends/onnxruntime` loads it.
 */
export * from "#ort";
