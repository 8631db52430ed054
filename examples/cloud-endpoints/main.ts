import { sageMaker, vertexAi } from "@tritonjs/cloud";
import { batch, Triton } from "@tritonjs/core";

/*
 * A model behind the routes that SageMaker and Vertex AI call.
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

const body = JSON.stringify({ inputs: [{ name: "x", datatype: "FP32", shape: [1, 1], data: [21] }] });
async function call(server: string, route: string, init?: RequestInit): Promise<void> {
  const answer = await fetch(addresses[server]!.url + route, init);
  const [values] = /"data":.*?\]/.exec(await answer.text()) ?? [];
  console.log(`${server} ${route}: ${answer.status}${values === undefined ? "" : ` ${values}`}`);
}

await call("sagemaker", "/ping");
await call("sagemaker", "/invocations", { method: "POST", body });
await call("vertex-ai", "/health");
await call("vertex-ai", "/predict", { method: "POST", body });
// A header sends a prediction to another route. Routes that change the server are refused.
for (const route of ["v2/models/double/infer", "v2/repository/models/double/unload"]) {
  console.log(`redirected to ${route}`);
  const headers = { "x-vertex-ai-triton-redirect": route };
  await call("vertex-ai", "/predict", { method: "POST", body, headers });
}
