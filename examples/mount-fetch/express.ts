import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { fetchHandler, toNodeListener } from "@tritonjs/http/fetch";
import express, { type ErrorRequestHandler, type Response } from "express";
import { answerTo } from "./error-status.js";
import { openInference } from "./inference.js";

/*
 * An Express application with models: the v2 routes, and two routes of its own that call models in process.
 *
 *   PORT=3000 npm start
 */

const { triton, double, countdown } = openInference();
const app = express();

// The v2 routes read request bodies themselves, so mount them before body parsers.
app.use("/inference", toNodeListener(fetchHandler(triton, { prefix: "/inference" })));
app.use(express.json());

app.get("/", (_request, response) => {
  response.send("hello");
});

app.get("/double/:value", async ({ params }, response) => {
  const { y } = await double.inferSample({ x: [Number(params.value)] }, { signal: signalOf(response) });
  response.json({ result: y.get(0) });
});

// Server-sent events. A slow client slows the model down, and a client that leaves stops it.
app.get("/countdown/:from", async ({ params }, response) => {
  const answers = countdown.stream({ from: [Number(params.from)] }, { signal: signalOf(response) });
  // An error before the first answer still has a status.
  const first = await answers.next();
  response.type("text/event-stream");
  async function* events() {
    for (let answer = first; !answer.done; answer = await answers.next())
      yield `data: ${answer.value.left.get(0)}\n\n`;
  }
  await pipeline(Readable.from(events()), response);
});

const failed: ErrorRequestHandler = (error, _request, response, _next) => {
  // The client has left, or has a part of the answer.
  if (response.headersSent || response.destroyed) return void response.destroy();
  const { status, text } = answerTo(error);
  response.status(status).json({ error: text });
};
app.use(failed);

/** Aborts when the client leaves before it has its answer. */
function signalOf(response: Response): AbortSignal {
  const left = new AbortController();
  response.once("close", () => {
    if (!response.writableFinished) left.abort();
  });
  return left.signal;
}

const server = app.listen(Number(process.env.PORT ?? 3000), () => {
  console.log(`listening at http://localhost:${(server.address() as AddressInfo).port}`);
});

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, async () => {
    await triton.close();
    server.close();
  });
}
