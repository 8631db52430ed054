import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { fetchHandler, toNodeListener } from "@tritonjs/http/fetch";
import { rolldown } from "rolldown";
import { openSpeech } from "./speech-server.js";

/** A server of the page, and of the models that it calls, on one port of this machine. */
export async function openPageServer(port: number) {
  const triton = await openSpeech();
  const models = fetchHandler(triton);
  const file = (name: string) => readFile(new URL(`../page/${name}`, import.meta.url), "utf8");
  const script = "text/javascript; charset=utf-8";
  const pages = new Map([
    ["/", { body: await file("index.html"), type: "text/html; charset=utf-8" }],
    ["/page.js", { body: await bundle("./page/page.js"), type: script }],
    ["/worklet.js", { body: await file("worklet.js"), type: script }],
  ]);
  const server = createServer(
    toNodeListener(async (request) => {
      const page = pages.get(new URL(request.url).pathname);
      if (page === undefined) return models(request);
      return new Response(page.body, { headers: { "content-type": page.type } });
    }),
  );
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(port, "127.0.0.1", resolve);
  });
  const close = async () => {
    server.close();
    server.closeAllConnections();
    await triton.close();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

/** Joins the compiled script of the page and its imports to one file. */
async function bundle(module: string): Promise<string> {
  const build = await rolldown({
    input: fileURLToPath(new URL(module, import.meta.url)),
    platform: "browser",
  });
  const { output } = await build.generate({ format: "esm", minify: true });
  await build.close();
  return output[0].code;
}
