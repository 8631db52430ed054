import { fetchHandler } from "@tritonjs/http/fetch";
import { openInference } from "./inference.js";

/*
 * The v2 routes in `Bun.serve`, next to a path of its own.
 *
 *   PORT=3000 npm run start:bun
 */

/** The part of Bun that this program uses; the package `@types/bun` has all of it. */
declare const Bun: {
  serve(options: {
    port: number;
    idleTimeout: number;
    fetch(request: Request): Response | Promise<Response>;
  }): { readonly port: number; stop(): Promise<void> };
};

const { triton } = openInference();
const inference = fetchHandler(triton, { prefix: "/inference" });

const server = Bun.serve({
  port: Number(process.env.PORT ?? 3000),
  // Bun hangs up after 10 s without a byte, which a model may need for an answer. 0 lets it wait.
  idleTimeout: 0,
  fetch: (request) =>
    new URL(request.url).pathname.startsWith("/inference/") ? inference(request) : new Response("hello"),
});

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, async () => {
    await triton.close();
    await server.stop();
  });
}

console.log(`listening at http://localhost:${server.port}`);
