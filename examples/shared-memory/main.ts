import { fork } from "node:child_process";
import { once } from "node:events";
import { sample, Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";
import { serviceOf } from "@tritonjs/server";

/*
 * A server, and a client in another process that shares memory with it.
 *
 *   npm start
 */

await using triton = new Triton({ allowClientSharedMemory: true });
triton.bind({
  modelName: "double",
  inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
  inferFunc: sample(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
});
const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });

const { url } = addresses.http!;
const client = fork(new URL("./client.js", import.meta.url), {
  env: { ...process.env, SERVER_URL: url, ACCESS_TOKEN: serviceOf(triton).accessToken },
});
const [code] = await once(client, "exit");
console.log(`the client ended with ${code}`);
