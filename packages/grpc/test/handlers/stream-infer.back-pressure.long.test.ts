import type { ClientHttp2Stream } from "node:http2";
import { Tensor } from "@tritonjs/core";
import { encodeMessage, inference } from "@tritonjs/protocol/grpc";
import { expect, test } from "vitest";
import { FakeService, responseTo } from "../support/fake-service.js";
import type { GrpcClient } from "../support/grpc-client.js";
import { overEachTransport } from "../support/over-each-transport.js";
import { framed, rawSession } from "../support/raw-call.js";
import { serve } from "../support/serve.js";

const RESPONSES = 50_000;
const REQUESTS = 50_000;
const MEBIBYTE = 1024 * 1024;

const request = framed(encodeMessage(inference.ModelInferRequest, { modelName: "m" }));

/** A stream on a bare connection whose responses are not read yet. */
function unreadStream(url: string): ClientHttp2Stream {
  const stream = rawSession(url).request({
    ":method": "POST",
    ":path": "/inference.GRPCInferenceService/ModelStreamInfer",
    "content-type": "application/grpc",
    te: "trailers",
  });
  stream.on("error", () => {});
  return stream;
}

/** Counts the messages read, and the largest memory used meanwhile. */
async function readAll(stream: ClientHttp2Stream) {
  const used = () => process.memoryUsage().heapUsed + process.memoryUsage().external;
  const before = used();
  let messages = 0;
  let most = 0;
  let missing = 0;
  let head: Buffer = Buffer.alloc(0);
  for await (const piece of stream as AsyncIterable<Buffer>) {
    let at = missing;
    missing = Math.max(0, missing - piece.length);
    const rest = head.length > 0 ? Buffer.concat([head, piece]) : piece;
    head = Buffer.alloc(0);
    while (at < rest.length) {
      if (rest.length - at < 5) {
        head = rest.subarray(at);
        break;
      }
      const end = at + 5 + rest.readUInt32BE(at + 1);
      messages++;
      missing = Math.max(0, end - rest.length);
      at = end;
    }
    if (messages % 1000 === 0) most = Math.max(most, used() - before);
  }
  return { messages, most };
}

/** The value of `count` once it stays the same while `client` exchanges several other messages with the server. */
const settled = async (count: () => number, client: GrpcClient): Promise<number> => {
  for (let last = -1; ; ) {
    if (count() > 0 && count() === last) return last;
    last = count();
    for (let call = 0; call < 10; call++) await client.infer({ modelName: "nosuch" }).catch(() => {});
  }
};

overEachTransport("a stream that the client does not read", () => {
  test("stops a model with many responses and uses no memory for them", async () => {
    let made = 0;
    const outputs = new Map([["Y", Tensor.fromBytes("UINT8", [8], new Uint8Array(8))]]);
    const service = new FakeService({ modelTransactionPolicy: { decoupled: true } }, async (one) => {
      for (made = 1; made <= RESPONSES; made++) {
        one.respond(responseTo(one, outputs), made === RESPONSES);
        if (one.writable !== undefined) await one.writable;
      }
    });
    const { address, client } = await serve(service);
    const stream = unreadStream(address.url);
    stream.end(request);
    expect(await settled(() => made, client)).toBeLessThan(RESPONSES / 2);
    const { messages, most } = await readAll(stream);
    expect(messages).toBe(RESPONSES);
    expect(most).toBeLessThan(15 * MEBIBYTE);
    await expect(client.infer({ modelName: "nosuch" })).rejects.toMatchObject({ code: 5 });
  });

  test("stops reading many requests", async () => {
    const service = new FakeService();
    const { address, client } = await serve(service);
    const stream = unreadStream(address.url);
    const batch = Buffer.concat(Array.from({ length: 1000 }, () => request));
    for (let sent = 0; sent < REQUESTS; sent += 1000) stream.write(batch);
    stream.end();
    expect(await settled(() => service.requests.length, client)).toBeLessThan(REQUESTS / 2);
    const { messages } = await readAll(stream);
    expect(messages).toBe(REQUESTS);
  });
});
