import wasm from "@tritonjs/onnxruntime-wasm/ort-wasm-simd-threaded.wasm" with { type: "file" };
// As seen from `dist`.
import model from "../../quickstart/iris/iris.onnx" with { type: "file" };
import { openIris } from "./iris-handler.js";

/*
 * A server with a model that `bun build --compile` makes one file of:
 *
 *   bun build --compile dist/bun.js --outfile iris-server
 *   PORT=3000 ./iris-server
 */

/** The part of Bun that this program uses; the package `@types/bun` has all of it. */
declare const Bun: {
  file(path: string): { bytes(): Promise<Uint8Array> };
  serve(options: { port: number; idleTimeout: number; fetch(request: Request): Promise<Response> }): {
    readonly port: number;
    stop(): Promise<void>;
  };
};

const [wasmBytes, modelBytes] = await Promise.all([Bun.file(wasm).bytes(), Bun.file(model).bytes()]);
const { triton, answer } = await openIris({ wasm: wasmBytes, model: modelBytes });

const server = Bun.serve({ port: Number(process.env.PORT ?? 3000), idleTimeout: 0, fetch: answer });
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, async () => {
    await triton.close();
    await server.stop();
  });
}
console.log(`listening at http://localhost:${server.port}`);
