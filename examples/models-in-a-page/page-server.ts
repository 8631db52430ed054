import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { Triton } from "@tritonjs/core";
import { fetchHandler, toNodeListener } from "@tritonjs/http/fetch";
import { rolldown } from "rolldown";

const model = fileURLToPath(new URL("../../quickstart/iris/iris.onnx", import.meta.url));

/** Joins a module of the page and its imports to one file for the web platform. */
async function bundle(module: string): Promise<string> {
  const build = await rolldown({
    input: fileURLToPath(new URL(module, import.meta.url)),
    platform: "browser",
  });
  const { output } = await build.generate({ format: "esm", minify: true, codeSplitting: false });
  await build.close();
  return output[0].code;
}

/** A server of the page with all its files, and of the model for pages that have not loaded theirs. */
export async function openPageServer(port: number) {
  const triton = new Triton();
  const iris = triton.bind({ modelName: "iris", inferFunc: onnxruntime({ model, engine: "wasm" }) });
  await iris.ready();
  const models = fetchHandler(triton);
  const wasm = new URL(import.meta.resolve("@tritonjs/onnxruntime-wasm/ort-wasm-simd-threaded.wasm"));
  const files = new Map<string, readonly [string, string | Uint8Array<ArrayBuffer>]>([
    [
      "/",
      ["text/html; charset=utf-8", await readFile(new URL("../page/index.html", import.meta.url), "utf8")],
    ],
    ["/page.js", ["text/javascript; charset=utf-8", await bundle("./page/page.js")]],
    ["/iris-worker.js", ["text/javascript; charset=utf-8", await bundle("./page/iris-worker.js")]],
    ["/iris.onnx", ["application/octet-stream", await readFile(model)]],
    ["/ort.wasm", ["application/wasm", await readFile(wasm)]],
  ]);
  const listener = toNodeListener(async (request) => {
    const file = files.get(new URL(request.url).pathname);
    return file === undefined
      ? models(request)
      : new Response(file[1], { headers: { "content-type": file[0] } });
  });
  const server = createServer(listener);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(port, "127.0.0.1", resolve);
  });
  const close = async () => {
    server.close();
    server.closeAllConnections();
    await triton.close();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, files, close };
}
