import type { AddressInfo } from "node:net";
import { sample, Triton } from "@tritonjs/core";
import { v2Plugin } from "@tritonjs/http";
import fastify from "fastify";

/*
 * An existing fastify application gets the v2 routes: on its own port, under a prefix, behind its own hooks.
 *
 *   PORT=3000 npm start
 *   curl localhost:3000/inference/v2/models/double
 */

const triton = new Triton();
const double = triton.bind({
  modelName: "double",
  inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
  inferFunc: sample(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
});

const app = fastify();
app.addHook("onRequest", async (request, reply) => {
  reply.header("x-served-by", "my-app");
  if (request.headers["x-blocked"]) reply.code(401).send({ error: "blocked" });
});

// A route of the application may call the model in process.
app.get<{ Params: { value: string } }>("/double/:value", async ({ params }) => {
  const { y } = await double.inferSample({ x: [Number(params.value)] });
  return { result: y.data[0] };
});

app.register(v2Plugin, { triton, prefix: "/inference" });

await app.listen({ port: Number(process.env.PORT ?? 3000) });
console.log(`listening at http://localhost:${(app.server.address() as AddressInfo).port}`);

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, async () => {
    await triton.close();
    await app.close();
  });
}
