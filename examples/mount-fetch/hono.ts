import { serve } from "@hono/node-server";
import { fetchHandler } from "@tritonjs/http/fetch";
import { Hono } from "hono";
import { streamSSE } from "hono/streaming";
import { answerTo } from "./error-status.js";
import { openInference } from "./inference.js";

/*
 * A Hono application with models: the v2 routes, and two routes of its own that call models in process.
 *
 *   PORT=3000 npm run start:hono
 */

const { triton, double, countdown } = openInference();
const inference = fetchHandler(triton, { prefix: "/inference" });

const app = new Hono();
app.get("/", (context) => context.text("hello"));
app.all("/inference/*", (context) => inference(context.req.raw));

// The signal of the request aborts when its client leaves.
app.get("/double/:value", async (context) => {
  const { signal } = context.req.raw;
  const { y } = await double.inferSample({ x: [Number(context.req.param("value"))] }, { signal });
  return context.json({ result: y.get(0) });
});

// Server-sent events. A slow client slows the model down, and a client that leaves stops it.
app.get("/countdown/:from", async (context) => {
  const answers = countdown.stream({ from: [Number(context.req.param("from"))] });
  // An error before the first answer still has a status.
  const first = await answers.next();
  return streamSSE(context, async (events) => {
    events.onAbort(() => void answers.return());
    for (let answer = first; !answer.done; answer = await answers.next())
      await events.writeSSE({ data: String(answer.value.left.get(0)) });
  });
});

app.onError((error, context) => {
  const { status, text } = answerTo(error);
  return context.json({ error: text }, status);
});

const server = serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3000) }, ({ port }) => {
  console.log(`listening at http://localhost:${port}`);
});

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, async () => {
    await triton.close();
    server.close();
  });
}
