import { gunzipSync, inflateSync } from "node:zlib";
import { Tensor } from "@tritonjs/core";
import { decodeMessage, encodeMessage, inference } from "@tritonjs/protocol/grpc";
import { describe, expect, test } from "vitest";
import type { CompressionLevel } from "../../../src/index.js";
import { FakeService, responseTo } from "../../support/fake-service.js";
import { framed, rawSession } from "../../support/raw-call.js";
import { serve } from "../../support/serve.js";

const zeros = (count: number) => ({
  modelName: "m",
  inputs: [{ name: "X", datatype: "UINT8", shape: [count] }],
  rawInputContents: [new Uint8Array(count)],
});

/** The bytes and the encoding of the response to a call that accepts `encodings`. */
async function answerTo(url: string, count: number, encodings?: string) {
  const stream = rawSession(url).request({
    ":method": "POST",
    ":path": "/inference.GRPCInferenceService/ModelInfer",
    "content-type": "application/grpc",
    te: "trailers",
    ...(encodings !== undefined && { "grpc-accept-encoding": encodings }),
  });
  stream.end(framed(encodeMessage(inference.ModelInferRequest, zeros(count))));
  let encoding: unknown;
  stream.on("response", (headers) => (encoding = headers["grpc-encoding"]));
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece as Buffer);
  const bytes = Buffer.concat(pieces);
  return { encoding, compressed: bytes[0] === 1, message: bytes.subarray(5) };
}

const contentsOf = (message: Buffer) =>
  decodeMessage(inference.ModelInferResponse, message).rawOutputContents[0]!.length;

describe("inference responses", () => {
  test.each(["low", "medium", "high"] as const)("are compressed at level %s", async (level) => {
    const { address, client } = await serve(new FakeService(), { inferResponseCompressionLevel: level });
    const { encoding, compressed, message } = await answerTo(address.url, 100_000, "identity, deflate, gzip");
    expect([encoding, compressed]).toEqual(["gzip", true]);
    expect(message.length).toBeLessThan(10_000);
    expect(contentsOf(gunzipSync(message))).toBe(100_000);
    const { rawOutputContents } = await client.infer(zeros(100_000));
    expect(rawOutputContents[0]).toHaveLength(100_000);
  });

  test("are compressed in an encoding that the client accepts", async () => {
    const level: CompressionLevel = "low";
    const { address } = await serve(new FakeService(), { inferResponseCompressionLevel: level });
    const deflated = await answerTo(address.url, 100_000, "identity,deflate");
    expect([deflated.encoding, deflated.compressed]).toEqual(["deflate", true]);
    expect(contentsOf(inflateSync(deflated.message))).toBe(100_000);
    for (const encodings of [undefined, "identity", "snappy"]) {
      const plain = await answerTo(address.url, 100_000, encodings);
      expect([plain.encoding, plain.compressed]).toEqual([undefined, false]);
    }
  });

  test("are not compressed when they are small or the option is unset", async () => {
    const { address } = await serve(new FakeService(), { inferResponseCompressionLevel: "high" });
    expect(await answerTo(address.url, 8, "gzip")).toMatchObject({ encoding: "gzip", compressed: false });
    const { address: usual } = await serve(new FakeService());
    expect(await answerTo(usual.url, 100_000, "gzip")).toMatchObject({ compressed: false });
  });

  test("keep their order on a stream and arrive before its end", async () => {
    const service = new FakeService({ modelTransactionPolicy: { decoupled: true } }, (request) => {
      for (let i = 0; i < 50; i++) {
        const bytes = new Uint8Array(i % 2 === 0 ? 200_000 : 10).fill(i);
        const outputs = new Map([["Y", Tensor.fromBytes("UINT8", [bytes.length], bytes)]]);
        request.respond(responseTo(request, outputs), i === 49);
      }
    });
    const { client } = await serve(service, { inferResponseCompressionLevel: "low" });
    const stream = client.stream();
    stream.write({ modelName: "m" });
    stream.end();
    const seen: number[] = [];
    for await (const { inferResponse } of stream) seen.push(inferResponse.rawOutputContents[0][0]);
    expect(seen).toEqual(Array.from({ length: 50 }, (_, i) => i));
  });
});
