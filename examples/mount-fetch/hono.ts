import { serve } from "@hono/node-server";
import { fetchHandler } from "@tritonjs/http/fetch";
import { Hono } from "hono";
import { createTriton } from "./model.js";

/*
 * The v2 routes in a Hono application.
 *
 *   PORT=3000 node dist/hono.js
 */

const triton = createTriton();
const inference = fetchHandler(triton, { prefix: "/inference" });

const app = new Hono();
app.get("/", (context) => context.text("hello"));
app.all("/inference/*", (context) => inference(context.req.raw));

const server = serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3000) }, ({ port }) => {
  console.log(`listening at http://localhost:${port}`);
});

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, async () => {
    await triton.close();
    server.close();
  });
}
