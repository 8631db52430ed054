import { gzipSync } from "node:zlib";
import { InferenceServerClient } from "@tritonjs/client/grpc";
import { sample, Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { http } from "@tritonjs/http";
import { serviceOf } from "@tritonjs/server";

/*
 * A budget for the memory of all requests, a limit on what a compressed request may unpack to, and limits on the size of
 * a single request.
 *
 *   npm start
 */

const MEBIBYTE = 2 ** 20;
await using triton = new Triton({
  requestMemory: { byteSize: 16 * MEBIBYTE, maxCompressionRatio: 100 },
});
let finish: () => void = () => {};
let hasBegun: () => void = () => {};
triton.bind({
  modelName: "size",
  inputs: [{ name: "x", dtype: "UINT8", shape: [-1] }],
  outputs: [{ name: "bytes", dtype: "INT32", shape: [1] }],
  inferFunc: sample(async ({ x }) => {
    hasBegun();
    await new Promise<void>((resolve) => {
      finish = resolve;
    });
    return { bytes: [x.data.length] };
  }),
});
// A single request may have 12 MiB, and 64 KiB for the description of its tensors.
const { addresses } = await triton.serve({
  frontends: [
    http({ port: 0, maxInputSize: 12 * MEBIBYTE }),
    grpc({ port: 0, maxReceiveMessageSize: 12 * MEBIBYTE + 65_536 }),
  ],
});

/** Sends a body of raw bytes, and describes the answer. */
async function send(what: string, body: Uint8Array<ArrayBuffer>, headers: object = {}): Promise<string> {
  const answer = await fetch(`${addresses.http!.url}/v2/models/size/infer`, {
    method: "POST",
    headers: { "inference-header-content-length": "0", ...headers },
    body,
  });
  if (answer.ok) return `${what}: ${answer.status}`;
  const { error } = (await answer.json()) as { error: string };
  const retryAfter = answer.headers.get("retry-after");
  return `${what}: ${answer.status} ${error}${retryAfter === null ? "" : `\n  retry after ${retryAfter} s`}`;
}

const begun = new Promise<void>((resolve) => {
  hasBegun = resolve;
});
const first = send("12 MiB", new Uint8Array(12 * MEBIBYTE));
await begun;
// The first request holds 12 of 16 MiB while it runs.
console.log(await send("8 MiB more", new Uint8Array(8 * MEBIBYTE)));
finish();
console.log(await first);

const bomb = new Uint8Array(gzipSync(new Uint8Array(12 * MEBIBYTE)));
console.log(await send(`${bomb.length} bytes that unpack to 12 MiB`, bomb, { "content-encoding": "gzip" }));

const tooLarge = new Uint8Array(14 * MEBIBYTE);
console.log(await send("14 MiB over HTTP", tooLarge));
const client = new InferenceServerClient(addresses.grpc!.url);
const overGrpc = client.infer("size", { inputs: { x: tooLarge } });
console.log(`14 MiB over gRPC: ${await overGrpc.catch((error: Error) => error.message)}`);
client.close();
console.log(`bytes in use at the end: ${serviceOf(triton).requestMemory.usedBytes}`);
