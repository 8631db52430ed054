import { sample, Triton, TritonError } from "@tritonjs/core";
import { http } from "@tritonjs/http";
import { recentRequests } from "./recent-requests.js";

/*
 * A server with an extension of its own: it serves the last ten requests of each model as JSON.
 *
 *   npm start
 */

const accessToken = "a token of operators, who may see statistics";
await using triton = new Triton({ security: { accessToken }, extensions: [recentRequests()] });
const root = triton.bind({
  modelName: "root",
  inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
  inferFunc: sample(({ x }) => {
    if (x.data[0]! < 0) throw new TritonError("INVALID_ARG", "the root is not a real number");
    return { y: x.data.map(Math.sqrt) };
  }),
});
const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });
for (let x = 10; x >= -1; x--) await root.infer({ x: [x] }, { id: `x=${x}` }).catch(() => {});

const headers = { "triton-access-token": accessToken };
for (const model of ["root", "cube"]) {
  const answer = await fetch(`${addresses.http!.url}/v2/models/${model}/recent`, { headers });
  console.log(`${model}: ${answer.status}`);
  const body = await answer.json();
  for (const one of Array.isArray(body) ? body : [body]) console.log(JSON.stringify(one));
}
