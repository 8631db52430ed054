import { gzipSync } from "node:zlib";
import { sample, Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";

/*
 * A budget for the memory of all requests, and a limit on what a compressed request may unpack to.
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
const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });

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
console.log(`bytes in use at the end: ${triton.service.requestMemory.usedBytes}`);
