/* The module of ONNX Runtime, as far as it is used: its builds have no declarations. */

/** Settings of ONNX Runtime's WebAssembly. They apply to sessions that are opened later. */
export interface WasmSettings {
  /** Threads of an operator. */
  numThreads?: number;
  /** Whether a worker runs the sessions. */
  proxy?: boolean;
  /** Bytes of `ort-wasm-simd-threaded.wasm`. */
  wasmBinary?: ArrayBufferLike | Uint8Array;
  /** Place of the files of ONNX Runtime: a prefix, or the URLs of the files. */
  wasmPaths?: string | { readonly wasm?: string; readonly mjs?: string };
}

/** The part of ONNX Runtime that opens sessions. */
export interface SessionFactory {
  create(model: Uint8Array, options?: object): Promise<object>;
}

/** Settings of ONNX Runtime: `wasm.wasmBinary` or `wasm.wasmPaths` says where a page has its `.wasm` file. */
export declare const env: { readonly wasm: WasmSettings };

/** Opens sessions. */
export declare const InferenceSession: SessionFactory;
