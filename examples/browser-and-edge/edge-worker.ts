import { createClient, TritonError } from "@tritonjs/client/http";
import { Hono } from "hono";
import type { Models } from "./page-server.js";

/** Variables that the platform gives to a worker. */
export interface Environment {
  /** Address of the server with the models. */
  readonly MODELS_URL: string;
}

const app = new Hono<{ Bindings: Environment }>();

app.get("/", async (context) => {
  const values = Float64Array.from((context.req.query("values") ?? "").split(","), Number);
  const client = createClient<Models>(context.env.MODELS_URL);
  try {
    const { mean, deviation } = await client.model("spread").inferSample(
      { values },
      // The client of the worker leaves, or the platform ends the worker.
      { signal: context.req.raw.signal, timeoutMs: 5_000 },
    );
    return context.json({ mean: mean.data[0], deviation: deviation.data[0] });
  } catch (error) {
    const { code, message } = TritonError.from(error);
    return context.json({ error: message }, code === "INVALID_ARG" ? 400 : 502);
  } finally {
    await client.close();
  }
});

/** A worker at the edge in Hono: `GET /?values=2,4,6` is answered with results of a model. */
export default app;
