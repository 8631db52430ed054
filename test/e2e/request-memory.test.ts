import { connect } from "node:http2";
import { gzipSync } from "node:zlib";
import { sample } from "@tritonjs/core";
import { expect, it } from "vitest";
import { openTriton } from "./support/open-triton.js";

it("HTTP and gRPC share one memory budget, which the metrics page reports", async () => {
  const triton = openTriton({ requestMemory: { byteSize: 10_000 } });
  let arrive = (): void => {};
  let answer = (): void => {};
  const arrived = new Promise<void>((resolve) => (arrive = resolve));
  const told = new Promise<void>((resolve) => (answer = resolve));
  triton.bind({
    modelName: "slow",
    inputs: [{ name: "x", dtype: "UINT8", shape: [-1] }],
    outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
    inferFunc: sample(async ({ x }) => {
      arrive();
      await told;
      return { y: [x.data.length] };
    }),
    config: { batching: false },
  });
  const { addresses } = await triton.serve();
  const infer = (body: Uint8Array<ArrayBuffer>, headers = {}) =>
    fetch(`${addresses.http!.url}/v2/models/slow/infer`, {
      method: "POST",
      headers: { "inference-header-content-length": "0", ...headers },
      body,
    });
  const metrics = async () => {
    const page = await (await fetch(`${addresses.metrics!.url}/metrics`)).text();
    return page.split("\n").filter((line) => line.startsWith("tritonjs_request_memory"));
  };
  const overHttp = infer(new Uint8Array(8000));
  await arrived;
  const overGrpc = await callWith(addresses.grpc!.url, Buffer.alloc(4000));
  expect(overGrpc).toMatchObject({ "grpc-status": "14", "grpc-retry-pushback-ms": "1000" });
  const bomb = await infer(gzipSync(new Uint8Array(5000)) as Uint8Array<ArrayBuffer>, {
    "content-encoding": "gzip",
  });
  expect([bomb.status, bomb.headers.get("retry-after")]).toEqual([503, "1"]);
  expect(await metrics()).toEqual([
    "tritonjs_request_memory_used_bytes 8000",
    "tritonjs_request_memory_limit_bytes 10000",
    'tritonjs_request_memory_refused_total{reason="BUDGET"} 2',
    'tritonjs_request_memory_refused_total{reason="QUEUE"} 0',
    'tritonjs_request_memory_refused_total{reason="RATIO"} 0',
  ]);
  answer();
  expect((await overHttp).status).toBe(200);
  expect((await metrics())[0]).toBe("tritonjs_request_memory_used_bytes 0");
});

/** The headers that end a call with a message of these bytes. */
function callWith(url: string, message: Uint8Array): Promise<object> {
  const session = connect(`http://${url}`);
  const header = Buffer.alloc(5);
  header.writeUInt32BE(message.length, 1);
  return new Promise((resolve, reject) => {
    const stream = session.request({
      ":method": "POST",
      ":path": "/inference.GRPCInferenceService/ModelInfer",
      "content-type": "application/grpc",
      te: "trailers",
    });
    stream.on("response", (headers) => {
      resolve(headers);
      session.destroy();
    });
    stream.on("error", reject);
    stream.end(Buffer.concat([header, message]));
  });
}
