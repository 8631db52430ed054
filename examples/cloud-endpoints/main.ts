import { batch, Triton } from "@tritonjs/core";
import { sageMaker, vertexAi } from "@tritonjs/http/cloud";
import { body, call } from "./call.js";
import { multiModelEndpoint } from "./multi-model.js";
import { serveByVariables } from "./variables.js";

/*
 * A model behind the routes that SageMaker and Vertex AI call, an endpoint of many models, and servers that the
 * environment variables of a platform describe.
 *
 *   npm start
 */

await using triton = new Triton();
triton.bind({
  modelName: "double",
  inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
  inferFunc: batch(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
});
const { addresses } = await triton.serve({
  frontends: [
    sageMaker({ port: 0, address: "127.0.0.1" }),
    vertexAi({ port: 0, address: "127.0.0.1", predictRoute: "/predict", healthRoute: "/health" }),
  ],
});
const [sageMakerUrl, vertexAiUrl] = [addresses.sagemaker!.url, addresses["vertex-ai"]!.url];

await call("SageMaker", sageMakerUrl, "/ping");
await call("SageMaker", sageMakerUrl, "/invocations", { method: "POST", body });
await call("Vertex AI", vertexAiUrl, "/health");
await call("Vertex AI", vertexAiUrl, "/predict", { method: "POST", body });
// A header sends a prediction to another route. Routes that change the server are refused.
for (const route of ["v2/models/double/infer", "v2/repository/models/double/unload"]) {
  console.log(`redirected to ${route}`);
  const headers = { "x-vertex-ai-triton-redirect": route };
  await call("Vertex AI", vertexAiUrl, "/predict", { method: "POST", body, headers });
}

await multiModelEndpoint();
await serveByVariables();
