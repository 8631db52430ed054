import { batch, Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";

/*
 * A server that pages of one origin may call. The requests here are those that a browser sends for a page.
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
  frontends: [http({ port: 0, cors: { origins: ["https://app.example.com"], maxAgeSeconds: 600 } })],
});
const url = `${addresses.http!.url}/v2/models/double/infer`;
const body = JSON.stringify({ inputs: [{ name: "x", datatype: "FP32", shape: [1, 1], data: [21] }] });

for (const origin of ["https://app.example.com", "https://other.example.com"]) {
  const asked = {
    origin,
    "access-control-request-method": "POST",
    "access-control-request-headers": "content-type",
  };
  const preflight = await fetch(url, { method: "OPTIONS", headers: asked });
  const allowed = (answer: Response) => answer.headers.get("access-control-allow-origin") ?? "no origin";
  console.log(`${origin} asks: ${preflight.status}, allows ${allowed(preflight)}`);
  const answer = await fetch(url, {
    method: "POST",
    headers: { origin, "content-type": "application/json" },
    body,
  });
  console.log(`${origin} posts: ${answer.status}, allows ${allowed(answer)}`);
}
