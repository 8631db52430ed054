import type { AddressInfo } from "node:net";
import { createClient } from "@tritonjs/client/http";
import express from "express";
import { answerTo } from "./error-status.js";
import type { openInference } from "./inference.js";

/*
 * A second service in Express, which has no models. It calls those of the first, whose names and tensors the compiler
 * knows by the type of `openInference`. None of its code is imported.
 *
 *   PORT=3001 MODELS_URL=http://localhost:3000/inference npm run start:gateway
 */

const client = createClient<ReturnType<typeof openInference>["models"]>(
  process.env.MODELS_URL ?? "http://localhost:3000/inference",
  // A service that cannot be reached is an error of the request, not a wait of minutes.
  { initTimeoutMs: 2_000 },
);
const app = express();

app.get("/quadruple/:value", async ({ params }, response) => {
  try {
    const double = client.model("double");
    const { y } = await double.inferSample({ x: [Number(params.value)] });
    const twice = await double.inferSample({ x: y });
    response.json({ result: twice.y.get(0) });
  } catch (error) {
    const { status, text } = answerTo(error);
    response.status(status).json({ error: text });
  }
});

app.get("/countdown/:from", async ({ params }, response) => {
  try {
    const seen: number[] = [];
    const answers = client.model("countdown").streamSample({ from: Number(params.from) });
    for await (const { left } of answers) seen.push(left.get(0));
    response.json({ seen });
  } catch (error) {
    const { status, text } = answerTo(error);
    response.status(status).json({ error: text });
  }
});

const server = app.listen(Number(process.env.PORT ?? 3001), () => {
  console.log(`listening at http://localhost:${(server.address() as AddressInfo).port}`);
});

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, async () => {
    server.close();
    await client.close();
  });
}
