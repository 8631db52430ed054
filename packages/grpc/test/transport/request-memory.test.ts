import { once } from "node:events";
import type { ClientHttp2Session, ClientHttp2Stream, OutgoingHttpHeaders } from "node:http2";
import { deflateSync, gzipSync } from "node:zlib";
import { status } from "@grpc/grpc-js";
import { encodeMessage, inference } from "@tritonjs/protocol/grpc";
import { RequestMemory } from "@tritonjs/server";
import type { InferenceRequest } from "@tritonjs/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { FakeService } from "../support/fake-service.js";
import { framed, rawCall, rawSession } from "../support/raw-call.js";
import { serve } from "../support/serve.js";
import { answer, reader } from "../support/stream-reader.js";

const STREAM = { ":path": "/inference.GRPCInferenceService/ModelStreamInfer" };
const LIMIT = 10_000;

type Memory = ConstructorParameters<typeof RequestMemory>[0];

/** A message of exactly `size` bytes. */
function messageOf(size: number, modelName = "m"): Buffer {
  const encode = (content: number) =>
    encodeMessage(inference.ModelInferRequest, {
      modelName,
      inputs: [{ name: "X", datatype: "UINT8", shape: [content] }],
      rawInputContents: [new Uint8Array(content)],
    });
  let content = size;
  for (let over = 1; over > 0; content -= over) over = encode(content).length - size;
  expect(encode(content)).toHaveLength(size);
  return encode(content);
}

/** A gzip body of many members, which takes long to unpack. */
const long = Buffer.concat(Array<Buffer>(512).fill(gzipSync(Buffer.alloc(1 << 20))));

/** A server whose requests the test answers. */
async function open(options: Memory = { byteSize: LIMIT }, maxReceiveMessageSize?: number) {
  const requests: InferenceRequest[] = [];
  const service = new FakeService({}, (request) => void requests.push(request));
  const memory = new RequestMemory(options);
  service.requestMemory = memory;
  const { client, address, frontend } = await serve(service, { maxReceiveMessageSize, stopGraceMs: 30_000 });
  onTestFinished(() => requests.forEach((request) => void request.cancel()));
  const session = rawSession(address.url);
  const infer = (message: Uint8Array, headers: OutgoingHttpHeaders = {}) =>
    rawCall(session, framed(message, "grpc-encoding" in headers ? 1 : 0), headers);
  const arrived = (count: number) =>
    expect.poll(() => requests.length, { interval: 1 }).toBeGreaterThanOrEqual(count);
  /** Occupies the only decompression until it is cancelled. */
  const takeTurn = () => {
    const abort = new AbortController();
    const share = memory.share();
    const limits = { share, maxBytes: 2 ** 30, signal: abort.signal };
    const turn = memory.unpack(long, "gzip", limits).catch(() => {});
    onTestFinished(() => abort.abort());
    return async () => {
      abort.abort();
      await turn;
      share.release();
    };
  };
  return { service, memory, requests, session, client, frontend, infer, arrived, takeTurn };
}

/** One decompression at a time, with a gibibyte of memory. */
const oneTurn: Memory = { byteSize: 2 ** 30, maxDecompressions: 1, maxCompressionRatio: 0 };

function openRaw(session: ClientHttp2Session, headers: OutgoingHttpHeaders): ClientHttp2Stream {
  const stream = session.request({
    ":method": "POST",
    ":path": "/inference.GRPCInferenceService/ModelInfer",
    "content-type": "application/grpc",
    te: "trailers",
    ...headers,
  });
  stream.on("error", () => {});
  stream.resume();
  return stream;
}

describe("the request memory over http2", () => {
  test("is held until requests are answered, and requests beyond it are rejected", async () => {
    const { memory, requests, infer, session, arrived } = await open();
    const first = infer(messageOf(6000));
    await arrived(1);
    expect(memory.usedBytes).toBe(6005);
    const trailers: OutgoingHttpHeaders = {};
    const refused = openRaw(session, {});
    refused.on("response", (headers) => void Object.assign(trailers, headers));
    refused.end(framed(messageOf(6000)));
    await once(refused, "close");
    expect(trailers).toMatchObject({ "grpc-status": "14", "grpc-retry-pushback-ms": "1000" });
    expect(decodeURI(String(trailers["grpc-message"]))).toMatch(
      /^request refused: expected at most \d+ more bytes of request memory, got \d+ \(\d+ of 10000 are in use\)\. /,
    );
    expect(memory.usedBytes).toBe(6005);
    answer(requests[0]!);
    expect((await first).grpcStatus).toBe(status.OK);
    expect(memory.usedBytes).toBe(0);
    const next = infer(messageOf(6000));
    await arrived(2);
    answer(requests[1]!);
    expect((await next).grpcStatus).toBe(status.OK);
  });

  test("counts the unpacked size of a compressed message", async () => {
    const { memory, requests, infer, arrived } = await open();
    const call = infer(gzipSync(messageOf(9000)), { "grpc-encoding": "gzip" });
    await arrived(1);
    expect(memory.usedBytes).toBe(9005);
    const refused = await infer(deflateSync(messageOf(9000)), { "grpc-encoding": "deflate" });
    expect(refused.grpcStatus).toBe(status.UNAVAILABLE);
    answer(requests[0]!);
    expect((await call).grpcStatus).toBe(status.OK);
    expect(memory.usedBytes).toBe(0);
  });

  test("counts each request of a stream until it is answered", async () => {
    const { memory, requests, client, arrived } = await open();
    const stream = client.stream();
    const { next, ended } = reader(stream);
    const content = {
      modelName: "m",
      inputs: [{ name: "X", datatype: "UINT8", shape: [3000] }],
      rawInputContents: [new Uint8Array(3000)],
    };
    for (const id of ["a", "b", "c"]) stream.write({ ...content, id });
    await arrived(3);
    const each = memory.usedBytes / 3;
    expect(each).toBeGreaterThan(3000);
    answer(requests[0]!);
    await next();
    expect(memory.usedBytes).toBe(2 * each);
    stream.write({ ...content, id: "d" });
    await arrived(4);
    stream.write({ ...content, id: "e" });
    expect(await ended).toMatchObject({ code: status.UNAVAILABLE });
    await expect.poll(() => memory.usedBytes).toBe(0);
    expect(memory.refusals.BUDGET).toBe(1);
  });

  test("is freed after rejected, broken and abandoned requests", async () => {
    const { memory, session, infer } = await open();
    expect((await infer(Buffer.from("no message"))).grpcStatus).toBe(status.INTERNAL);
    expect((await infer(Buffer.from("no gzip"), { "grpc-encoding": "gzip" })).grpcStatus).toBe(
      status.INTERNAL,
    );
    expect((await infer(Buffer.from("x"), { "grpc-encoding": "snappy" })).grpcStatus).toBe(
      status.UNIMPLEMENTED,
    );
    expect((await infer(messageOf(3000, "unknown"))).grpcStatus).toBe(status.NOT_FOUND);
    // A stream reports the error in a message and continues.
    expect((await infer(messageOf(3000, "unknown"), STREAM)).grpcStatus).toBe(status.OK);
    expect(memory.usedBytes).toBe(0);
    const half = openRaw(session, {});
    half.write(framed(messageOf(3000)).subarray(0, 1000));
    await expect.poll(() => memory.usedBytes).toBe(1000);
    half.close(8);
    await expect.poll(() => memory.usedBytes).toBe(0);
  });

  test("is freed when a client abandons its running request", async () => {
    const { memory, session, arrived } = await open();
    for (const path of [{}, STREAM]) {
      const call = openRaw(session, path);
      call.write(framed(messageOf(3000)));
      if (path !== STREAM) call.end();
    }
    await arrived(2);
    expect(memory.usedBytes).toBe(2 * 3005);
    session.destroy();
    await expect.poll(() => memory.usedBytes).toBe(0);
  });
});

describe("decompression over http2", () => {
  test("waits in line, and a stopping server waits for it", async () => {
    const { service, memory, requests, frontend, infer, arrived, takeTurn } = await open(oneTurn);
    const endTurn = takeTurn();
    const before = memory.usedBytes;
    const call = infer(gzipSync(messageOf(3000)), { "grpc-encoding": "gzip" });
    await expect.poll(() => memory.usedBytes).not.toBe(before);
    await endTurn();
    await arrived(1);
    const stopped = frontend.stop();
    answer(requests[0]!);
    expect((await call).grpcStatus).toBe(status.OK);
    await stopped;
    expect(service.requestMemory.usedBytes).toBe(0);
  });

  test("is rejected when no more requests may wait", async () => {
    const { infer, takeTurn } = await open({ ...oneTurn, maxWaitingDecompressions: 0 });
    const endTurn = takeTurn();
    const refused = await infer(gzipSync("x"), { "grpc-encoding": "gzip" });
    expect(refused.grpcStatus).toBe(status.UNAVAILABLE);
    expect(decodeURI(refused.message!)).toContain(
      "too many compressed requests wait to be decompressed (1 run, 0 wait)",
    );
    await endTurn();
  });

  test("stops at once when the client leaves", async () => {
    const { memory, requests, session } = await open(oneTurn);
    const call = openRaw(session, { "grpc-encoding": "gzip" });
    const body = Buffer.concat(Array<Buffer>(60).fill(gzipSync(Buffer.alloc(1 << 20))));
    call.end(framed(body, 1));
    await expect.poll(() => memory.usedBytes, { interval: 1 }).toBeGreaterThan(body.length + 5);
    call.close(8);
    await expect.poll(() => memory.usedBytes).toBe(0);
    expect(requests).toEqual([]);
  });

  test("is not waited for when the deadline passes", async () => {
    const { memory, requests, session, infer, arrived, takeTurn } = await open({
      ...oneTurn,
      maxWaitingDecompressions: 1,
    });
    const endTurn = takeTurn();
    const call = openRaw(session, { "grpc-encoding": "gzip", "grpc-timeout": "100m" });
    call.end(framed(gzipSync(messageOf(3000)), 1));
    await once(call, "close");
    const next = infer(gzipSync(messageOf(3000)), { "grpc-encoding": "gzip" });
    await endTurn();
    await arrived(1);
    expect(memory.usedBytes).toBe(3005);
    answer(requests[0]!);
    expect((await next).grpcStatus).toBe(status.OK);
    expect(requests).toHaveLength(1);
    expect(memory.usedBytes).toBe(0);
  });

  test("rejects a bomb for its ratio", async () => {
    const { memory, infer } = await open({});
    const refused = await infer(gzipSync(Buffer.alloc(16 << 20)), { "grpc-encoding": "gzip" });
    expect(refused.grpcStatus).toBe(status.RESOURCE_EXHAUSTED);
    expect(decodeURI(refused.message!)).toMatch(
      /^the decompressed request has more than 100 times its compressed size of \d+/,
    );
    expect(memory.refusals.RATIO).toBe(1);
    expect(memory.usedBytes).toBe(0);
  });
});

describe("over http2, the largest message", () => {
  const hint = "Use grpc({ maxReceiveMessageSize }) to increase the limit.";

  test.each([
    ["ModelInfer", {}],
    ["ModelStreamInfer", STREAM],
  ])("follows maxReceiveMessageSize, compressed or not, for %s", async (_method, path) => {
    const { memory, requests, infer, arrived } = await open({}, 5000);
    const plain = await infer(messageOf(5001), path);
    expect(plain.grpcStatus).toBe(status.RESOURCE_EXHAUSTED);
    expect(decodeURI(plain.message!)).toBe(`Received message larger than max (5001 vs. 5000). ${hint}`);
    const packed = await infer(gzipSync(messageOf(5001)), { ...path, "grpc-encoding": "gzip" });
    expect(packed.grpcStatus).toBe(status.RESOURCE_EXHAUSTED);
    expect(decodeURI(packed.message!)).toBe(
      `Received message that decompresses to a size larger than 5000. ${hint}`,
    );
    expect(requests).toEqual([]);
    expect(memory.usedBytes).toBe(0);
    const fitting = [
      infer(messageOf(5000), path),
      infer(gzipSync(messageOf(5000)), { ...path, "grpc-encoding": "gzip" }),
    ];
    await arrived(2);
    for (const request of requests) answer(request);
    expect((await Promise.all(fitting)).map(({ grpcStatus }) => grpcStatus)).toEqual([status.OK, status.OK]);
  });

  test("defaults to 64 MiB and 64 KiB", async () => {
    const { session } = await open();
    const header = Buffer.alloc(5);
    header.writeUInt32BE(64 * 2 ** 20 + 64 * 2 ** 10 + 1, 1);
    const { grpcStatus, message } = await rawCall(session, header);
    expect({ grpcStatus, message: decodeURI(message!) }).toEqual({
      grpcStatus: status.RESOURCE_EXHAUSTED,
      message: `Received message larger than max (67174401 vs. 67174400). ${hint}`,
    });
  });
});
