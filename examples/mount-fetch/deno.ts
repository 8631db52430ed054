import process from "node:process";
import { fetchHandler } from "@tritonjs/http/fetch";
import { openInference } from "./inference.js";

/*
 * The v2 routes in `Deno.serve`, next to a path of its own.
 *
 *   PORT=3000 npm run start:deno
 */

/** The part of Deno that this program uses; an editor with Deno's extension knows all of it. */
declare const Deno: {
  serve(
    options: { port: number; onListen(): void },
    handler: (request: Request) => Response | Promise<Response>,
  ): { readonly addr: { readonly port: number }; shutdown(): Promise<void> };
};

const { triton } = openInference();
const inference = fetchHandler(triton, { prefix: "/inference" });

const server = Deno.serve(
  // It would print a line of its own.
  { port: Number(process.env.PORT ?? 3000), onListen() {} },
  (request) =>
    new URL(request.url).pathname.startsWith("/inference/") ? inference(request) : new Response("hello"),
);

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, async () => {
    await triton.close();
    await server.shutdown();
  });
}

console.log(`listening at http://localhost:${server.addr.port}`);
