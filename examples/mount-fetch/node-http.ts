import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fetchHandler, toNodeListener } from "@tritonjs/http/fetch";
import { openInference } from "./inference.js";

/*
 * The v2 routes in a plain node:http server, next to a path of its own.
 *
 *   PORT=3000 npm run start:node-http
 */

const { triton } = openInference();
const inference = toNodeListener(fetchHandler(triton, { prefix: "/inference" }));

const server = createServer((request, response) => {
  if (request.url?.startsWith("/inference/")) void inference(request, response);
  else response.end("hello");
});

server.listen(Number(process.env.PORT ?? 3000), () => {
  console.log(`listening at http://localhost:${(server.address() as AddressInfo).port}`);
});

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, async () => {
    await triton.close();
    server.close();
  });
}
