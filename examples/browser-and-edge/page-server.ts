import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { sample, Triton, TritonError } from "@tritonjs/core";
import { type FetchHandler, fetchHandler, toNodeListener } from "@tritonjs/http/fetch";
import { bundleForWeb } from "./bundle.js";

/** Binds the models that the page and the worker call. Their clients know the models by the type of the handles. */
function bindModels(triton: Triton) {
  return {
    spread: triton.bind({
      modelName: "spread",
      inputs: [{ name: "values", dtype: "FP64", shape: [-1] }],
      outputs: [
        { name: "mean", dtype: "FP64", shape: [1] },
        { name: "deviation", dtype: "FP64", shape: [1] },
      ],
      inferFunc: sample(({ values: { data } }) => {
        const wrong = data.find((value) => !Number.isFinite(value));
        if (wrong !== undefined)
          throw new TritonError("INVALID_ARG", `values: expected finite numbers, got ${wrong}`);
        const mean = data.reduce((sum, value) => sum + value, 0) / data.length;
        const variance = data.reduce((sum, value) => sum + (value - mean) ** 2, 0) / data.length;
        return { mean: [mean], deviation: [Math.sqrt(variance)] };
      }),
    }),
  };
}

export type Models = ReturnType<typeof bindModels>;

/** A server of the page, and of the models that the page calls, on one port of this machine. */
export async function openPageServer(port: number) {
  const triton = new Triton();
  bindModels(triton);
  await triton.ready();
  const html = await readFile(new URL("../page/index.html", import.meta.url), "utf8");
  const script = await bundleForWeb("./page/page.js");
  const models = fetchHandler(triton);
  const server = await listen(port, async (request) => {
    const { pathname } = new URL(request.url);
    if (pathname === "/")
      return new Response(html, { headers: { "content-type": "text/html; charset=utf-8" } });
    if (pathname === "/page.js")
      return new Response(script, { headers: { "content-type": "text/javascript; charset=utf-8" } });
    return models(request);
  });
  const close = async () => {
    server.close();
    await triton.close();
  };
  return { url: server.url, close };
}

/** Serves a handler of web requests on a port of this machine. */
export async function listen(port: number, handler: FetchHandler) {
  const server = createServer(toNodeListener(handler));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(port, "127.0.0.1", resolve);
  });
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}
