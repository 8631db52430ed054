import { createServer, type Server } from "node:http";
import type { Models } from "./models.js";

/** An HTTP server with one route of its own: `GET /classify?features=5,3,1,0`. */
export function createApp(models: Models): Server {
  return createServer(async (request, response) => {
    const url = new URL(request.url ?? "/", "http://localhost");
    const features = (url.searchParams.get("features") ?? "").split(",").map(Number);
    if (url.pathname !== "/classify" || features.length !== 4 || features.some(Number.isNaN)) {
      response.writeHead(404).end("expected GET /classify?features=<four numbers>\n");
      return;
    }
    const left = new AbortController();
    response.once("close", () => left.abort());
    try {
      response.end(`${await models.classify(features, left.signal)}\n`);
    } catch (error) {
      response.writeHead(503).end(`${error instanceof Error ? error.message : error}\n`);
    }
  });
}
