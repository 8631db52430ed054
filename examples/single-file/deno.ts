import process from "node:process";
import { openIris } from "./iris-handler.js";

/*
 * A server with a model that `deno compile` makes one file of. `--include` puts the two files into it:
 *
 *   deno compile --bundle --allow-all --include ../quickstart/iris/iris.onnx \
 *     --include node_modules/@tritonjs/onnxruntime-wasm/ort/ort-wasm-simd-threaded.wasm --output iris-server dist/deno.js
 *   PORT=3000 ./iris-server
 */

/** The part of Deno that this program uses; an editor with Deno's extension knows all of it. */
declare const Deno: {
  readFile(file: URL): Promise<Uint8Array>;
  serve(
    options: { port: number; onListen(): void },
    handler: (request: Request) => Promise<Response>,
  ): { readonly addr: { readonly port: number }; shutdown(): Promise<void> };
};

// As seen from `dist`.
const [wasm, model] = await Promise.all(
  [
    "../node_modules/@tritonjs/onnxruntime-wasm/ort/ort-wasm-simd-threaded.wasm",
    "../../quickstart/iris/iris.onnx",
  ].map((path) => Deno.readFile(new URL(path, import.meta.url))),
);
const { triton, answer } = await openIris({ wasm: wasm!, model: model! });

const server = Deno.serve({ port: Number(process.env.PORT ?? 3000), onListen() {} }, answer);
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, async () => {
    await triton.close();
    await server.shutdown();
  });
}
console.log(`listening at http://localhost:${server.addr.port}`);
