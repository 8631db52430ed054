import fastify from "fastify";

/**
 * Starts fastify with one route that takes and answers the bytes of the v2 protocol for one row, and a health route.
 *
 * @param model name of the model
 * @param elements numbers of a row
 * @param compute gets the bytes of the FP32 tensor `x`, and returns those of `y`, as `{ shape, bytes }`
 * @returns the URL of the server
 */
export async function serveWithFastify(model, elements, compute) {
  const app = fastify();
  app.addContentTypeParser("application/octet-stream", { parseAs: "buffer" }, (_, body, done) =>
    done(null, body),
  );
  app.get("/v2/health/live", async () => "");
  app.post(`/v2/models/${model}/infer`, async ({ body, headers }, reply) => {
    const headerLength = Number(headers["inference-header-content-length"]);
    const { shape, bytes } = await compute(body.subarray(headerLength, headerLength + 4 * elements));
    const parameters = { binary_data_size: bytes.length };
    const outputs = [{ name: "y", datatype: "FP32", shape, parameters }];
    const header = Buffer.from(JSON.stringify({ model_name: model, model_version: "1", outputs }));
    reply.header("content-type", "application/octet-stream");
    reply.header("inference-header-content-length", header.length);
    return Buffer.concat([header, bytes]);
  });
  return app.listen({ host: "127.0.0.1", port: 0 });
}
