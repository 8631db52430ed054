import { createClient, TritonError } from "@tritonjs/client/http";
import type { Models } from "./page-server.js";

/** Variables that the platform gives to a worker. */
export interface Environment {
  /** Address of the server with the models. */
  readonly MODELS_URL: string;
}

/** A worker at the edge: `GET /?values=2,4,6` is answered with results of a model. */
export default {
  async fetch(request: Request, { MODELS_URL }: Environment): Promise<Response> {
    const text = new URL(request.url).searchParams.get("values") ?? "";
    const values = Float64Array.from(text.split(","), Number);
    const client = createClient<Models>(MODELS_URL);
    try {
      const { mean, deviation } = await client.model("spread").inferSample(
        { values },
        // The client of the worker leaves, or the platform ends the worker.
        { signal: request.signal, timeoutMs: 5_000 },
      );
      return Response.json({ mean: mean.data[0], deviation: deviation.data[0] });
    } catch (error) {
      const { code, message } = TritonError.from(error);
      return Response.json({ error: message }, { status: code === "INVALID_ARG" ? 400 : 502 });
    } finally {
      await client.close();
    }
  },
};
