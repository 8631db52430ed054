import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Triton } from "@tritonjs/core";
import { toNodeListener } from "@tritonjs/http/fetch";
import { textGeneration } from "@tritonjs/llm";
import { openAiFetchHandler } from "@tritonjs/llm/openai";

/** The page, and the story writer of `examples/text-generation`, both seen from `dist`. */
const page = new URL("../page/index.html", import.meta.url);
const model = new URL("../../text-generation/models/stories/1/", import.meta.url);

/** A server of the page and of the OpenAI endpoints that the page calls, on one port of this machine. */
export async function openChatServer(port: number) {
  const triton = new Triton();
  triton.bind({ modelName: "stories", inferFunc: textGeneration({ directory: model }) });
  await triton.ready();
  const api = openAiFetchHandler(triton);
  const server = createServer(
    toNodeListener(async (request) => {
      if (new URL(request.url).pathname !== "/") return api(request);
      return new Response(await readFile(page), { headers: { "content-type": "text/html; charset=utf-8" } });
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
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, triton, close };
}
