import { cutsItself, embeddingCalls } from "../embeddings/embedding-inputs.js";
import { embeddingModelOf } from "../embeddings/embedding-model.js";
import { cutVector, vectorBase64 } from "../embeddings/embedding-output.js";
import { readEmbeddingRequest } from "../embeddings/embedding-request.js";
import { runEmbeddings } from "../embeddings/run-embeddings.js";
import { lookUpModel, readRequest } from "./read-request.js";
import { jsonResult, type OpenAiRoute } from "./route.js";

/** Route of embeddings of texts: `POST /v1/embeddings`. */
export const embeddingsRoute: OpenAiRoute = {
  path: /^\/v1\/embeddings$/,
  method: "POST",
  group: "inference",
  access: "inference",
  async handle(exchange) {
    const wanted = await readRequest(exchange, readEmbeddingRequest);
    const found = (await lookUpModel(exchange, wanted.model)).inService();
    const model = embeddingModelOf(found.config);
    const calls = embeddingCalls(model, wanted);
    const { vectors, tokens } = await runEmbeddings(exchange, found, model, calls);
    const { dimensions, encoding } = wanted;
    const cut =
      dimensions === undefined || cutsItself(model)
        ? vectors
        : vectors.map((vector) => cutVector(vector, dimensions));
    return jsonResult({
      object: "list",
      data: cut.map((vector, index) => ({
        object: "embedding",
        index,
        embedding: encoding === "base64" ? vectorBase64(vector) : Array.from(vector),
      })),
      model: wanted.model,
      usage: tokens === undefined ? null : { prompt_tokens: tokens, total_tokens: tokens },
    });
  },
};
